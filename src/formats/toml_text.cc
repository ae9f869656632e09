#include "formats/toml_text.h"

#include <algorithm>
#include <sstream>

#include "base/fail.h"

namespace cohort::formats {
namespace {

/// No key of a job has half as many parts, and no list of layers in layers is half as deep.
constexpr int kMostDots = 16;
constexpr int kDeepest = 32;

[[noreturn]] void fail_toml(const std::string& source, std::size_t line, std::string_view what) {
  fail(ErrorCode::invalid, "{}:{}: this is not TOML: {}", source, line, excerpt(what, 200));
}

/// Refuses a text that nests too deep before the parser sees it, whose recursion would otherwise
/// end with the stack. Walks over the text as TOML is written: past strings and comments, counting
/// what nests. Dots count from one mark of punctuation to the next, so that those of a key add up
/// and those of many numbers do not.
class NestingCheck {
 public:
  NestingCheck(std::string_view text, const std::string& source) : rest_(text), source_(source) {}

  void run() {
    while (!rest_.empty()) {
      const char c = rest_[0];
      if (c == '"' || c == '\'') {
        skip_string(c);
      } else if (c == '#') {
        skip(std::min(rest_.find('\n'), rest_.size()));
      } else {
        count(c);
        skip(1);
      }
    }
  }

 private:
  void skip(std::size_t bytes) {
    for (const char c : rest_.substr(0, bytes)) line_ += c == '\n' ? 1 : 0;
    rest_.remove_prefix(std::min(bytes, rest_.size()));
  }

  /// To behind the closing quotes: three where there are three to open, and up to two more before
  /// them that are content. A string of one line ends with it, closed or not.
  void skip_string(char quote) {
    const std::string three(3, quote);
    const bool long_one = rest_.starts_with(three);
    const std::string_view close = std::string_view(three).substr(0, long_one ? 3 : 1);
    std::size_t at = close.size();
    while (at < rest_.size() && !rest_.substr(at).starts_with(close)) {
      if (!long_one && rest_[at] == '\n') return skip(at);
      at += quote == '"' && rest_[at] == '\\' ? 2 : 1;
    }
    at += close.size();
    for (int more = 0; long_one && more < 2 && at < rest_.size() && rest_[at] == quote; ++more)
      ++at;
    skip(std::min(at, rest_.size()));
  }

  void count(char c) {
    if (c == '.') {
      if (++dots_ > kMostDots) fail_toml(source_, line_, "a key has too many parts");
    } else if (c == '[' || c == '{') {
      if (++deep_ > kDeepest) fail_toml(source_, line_, "it nests too deep");
    } else if (c == ']' || c == '}') {
      --deep_;
    }
    if (std::string_view("[]{}=,\n").find(c) != std::string_view::npos) dots_ = 0;
  }

  std::string_view rest_;
  const std::string& source_;
  std::size_t line_ = 1;
  int deep_ = 0;
  int dots_ = 0;
};

}  // namespace

toml::table parse_toml(std::string_view text, const std::string& source) {
  NestingCheck(text, source).run();
  try {
    return toml::parse(text, source);
  } catch (const toml::parse_error& error) {
    fail_toml(source, error.source().begin.line, error.description());
  }
}

std::string description_of(const toml::node& node) {
  std::ostringstream text;
  switch (node.type()) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      text << "the list ";
      break;
    case toml::node_type::string:
      text << "the string ";
      break;
    default:
      break;
  }
  text << toml::toml_formatter{node, toml::format_flags::none};
  return excerpt(text.str());
}

}  // namespace cohort::formats
