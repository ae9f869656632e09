#include "data/sources/text_files.h"

#include <algorithm>
#include <utility>

#include "base/fail.h"
#include "data/preprocessing/inputs.h"

namespace cohort::data {
namespace {

/// Read at once, at least.
constexpr std::size_t kLeastBlock = 256 << 10;

/// As many as LIBSVM rows may have. A field takes memory even where there is nothing in it.
constexpr std::size_t kMostFields = 1 << 24;

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

}  // namespace

TextWindow::TextWindow(const std::filesystem::path& path) : file_(path.string()), input_(path) {}

// What was taken is dropped here and not in take(), which readers call for every line.
bool TextWindow::extend(std::int64_t line) {
  buffer_.erase(0, taken_);
  taken_ = 0;
  const std::size_t kept = buffer_.size();
  if (kept >= kMostBytes) {
    fail(ErrorCode::invalid, "{} line {}: it does not end within {} MiB", file_, line,
         kMostBytes >> 20);
  }
  // As much again as there is: whoever starts over after each block reads everything twice at most.
  buffer_.resize(kept + std::max(kLeastBlock, kept));
  const std::size_t got = input_.read(std::as_writable_bytes(std::span(buffer_).subspan(kept)));
  buffer_.resize(kept + got);
  return got > 0;
}

// Searches on where it had stopped after each block, so a long line is looked at once.
bool LineReader::next(std::string_view& line) {
  ++line_;
  std::size_t end = 0;
  while ((end = window_.rest().find('\n', end)) == std::string_view::npos) {
    end = window_.rest().size();
    if (!window_.extend(line_)) break;
  }
  line = window_.rest();
  if (line.empty()) return false;
  end = std::min(end, line.size());
  window_.take(std::min(end + 1, line.size()));
  line = line.substr(0, end);
  if (line.ends_with('\r')) line.remove_suffix(1);
  check_no_nul(line, file(), line_);
  return true;
}

void check_no_nul(std::string_view text, const std::string& file, std::int64_t line) {
  if (text.find('\0') == std::string_view::npos) return;
  fail(ErrorCode::invalid, "{} line {}: there is a NUL byte in it, so it is no text", file, line);
}

bool CsvReader::at_line_end() const {
  return rest_.empty() || rest_[0] == '\n' || rest_.starts_with("\r\n");
}

void CsvReader::skip_line_end() {
  if (rest_.empty()) return;
  rest_.remove_prefix(rest_[0] == '\r' ? 2 : 1);
  ++line_;
}

CsvReader::CsvReader(const std::filesystem::path& path) : window_(path) {
  whole_ = !window_.extend(line_);
  if (window_.rest().starts_with(kByteOrderMark)) window_.take(kByteOrderMark.size());
}

// What touches the end of the window may go on behind it, so unless that is the end of the file the
// record is read once more, with more of the file to look at.
bool CsvReader::next(std::vector<std::string>& fields) {
  for (;;) {
    const std::int64_t line = line_;
    rest_ = window_.rest();
    const Read read = read_record(fields);
    const bool done = read == Read::record && (whole_ || !rest_.empty());
    if (done || read == Read::nothing) {
      const std::string_view taken = window_.rest().substr(0, window_.rest().size() - rest_.size());
      if (done) check_no_nul(taken, file(), record_line_);
      window_.take(taken.size());
      if (done || whole_) return done;
    } else {
      line_ = line;
    }
    whole_ = !window_.extend(line_);
  }
}

// Fields of the last record are written over, so that their memory is used again.
CsvReader::Read CsvReader::read_record(std::vector<std::string>& fields) {
  while (!rest_.empty() && at_line_end()) skip_line_end();
  if (rest_.empty()) return Read::nothing;
  record_line_ = line_;
  for (std::size_t count = 0;;) {
    if (count == kMostFields) {
      fail(ErrorCode::invalid, "{} line {}: there are more than {} fields in it", file(),
           record_line_, kMostFields);
    }
    if (fields.size() == count) fields.emplace_back();
    std::string& field = fields[count++];
    if (rest_.starts_with('"')) {
      if (!quoted_field(field)) return Read::cut;
    } else {
      plain_field(field);
    }
    if (at_line_end()) {
      fields.resize(count);
      break;
    }
    rest_.remove_prefix(1);  // The comma.
  }
  skip_line_end();
  return Read::record;
}

// Up to a comma or the end of the line, with the spaces around it taken off.
void CsvReader::plain_field(std::string& field) {
  std::size_t end = rest_.find_first_of(",\n");
  if (end == std::string_view::npos) end = rest_.size();
  std::string_view text = rest_.substr(0, end);
  if (end < rest_.size() && rest_[end] == '\n' && text.ends_with('\r')) {
    text.remove_suffix(1);
    --end;
  }
  rest_.remove_prefix(end);
  field = trimmed(text);
}

// With everything between the quotes as it is, line ends and spaces too. False where the window
// ends before the quote is closed.
bool CsvReader::quoted_field(std::string& field) {
  const std::int64_t opened = line_;
  field.clear();
  for (;;) {
    const std::size_t quote = rest_.find('"', 1);
    if (quote == std::string_view::npos) {
      if (!whole_) return false;
      fail(ErrorCode::invalid, "{} line {}: a quote is opened and never closed", file(), opened);
    }
    field += rest_.substr(1, quote - 1);
    rest_.remove_prefix(quote);
    if (!rest_.starts_with("\"\"")) break;
    field += '"';  // A doubled quote stands for one.
    rest_.remove_prefix(1);
  }
  rest_.remove_prefix(1);
  line_ += std::count(field.begin(), field.end(), '\n');
  if (!at_line_end() && rest_[0] != ',') {
    // A carriage return at the end of the window may be followed by its line feed.
    if (!whole_ && rest_ == "\r") return false;
    fail(ErrorCode::invalid, "{} line {}: there is text after a closing quote", file(), line_);
  }
  return true;
}

}  // namespace cohort::data
