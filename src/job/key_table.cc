#include "job/key_table.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "base/excerpt.h"
#include "base/fail.h"
#include "base/nearest_name.h"

namespace cohort {
namespace {

constexpr std::size_t kLongestName = 100;
constexpr std::size_t kLongestString = 4000;  // Paths end there.
constexpr std::size_t kLongestList = 10'000;

std::string type_words(const std::string&) {
  return "a string";
}
std::string type_words(std::int64_t) {
  return "a whole number";
}
std::string type_words(std::uint64_t) {
  return "a whole number";
}
std::string type_words(double) {
  return "a number";
}
std::string type_words(const std::optional<double>&) {
  return "a number";
}
std::string type_words(bool) {
  return "true or false";
}
std::string type_words(const std::vector<std::int64_t>&) {
  return "a list of whole numbers";
}
std::string type_words(const std::vector<LayerOptions>&) {
  return "a list of layers";
}

template <class Owner>
std::string type_name_of(const Key<Owner>& key) {
  return std::visit([](auto get) { return type_words(value_of(get, Owner())); }, key.field);
}

template <class Number>
void check_number(Number value, const Limits& limits, const std::string& name) {
  const auto within = static_cast<double>(value);
  if (!std::isfinite(within)) {
    fail(ErrorCode::invalid, "{} must be a finite number, but is {}", name, value);
  }
  if (within >= limits.least && within <= limits.most) return;
  fail(ErrorCode::invalid, "{} must be from {} to {}, but is {}", name, limits.least, limits.most,
       value);
}

void check_plain_name(const std::string& value, const std::string& name) {
  const auto is_control = [](unsigned char c) { return c < ' ' || c == 0x7f; };
  if (!value.empty() && value.size() <= kLongestName && value[0] != '.' &&
      value.find('/') == std::string::npos && std::ranges::none_of(value, is_control)) {
    return;
  }
  fail(ErrorCode::invalid,
       "{} must be 1 to {} characters that can name a folder (no \"/\", no control character, no "
       "\".\" in front), but is \"{}\"",
       name, kLongestName, excerpt(value));
}

void check_string(const std::string& value, const std::string& preset, const Limits& limits,
                  const std::string& name) {
  if (value.size() > kLongestString || value.find('\0') != std::string::npos) {
    fail(ErrorCode::invalid, "{} must be at most {} characters, none of them NUL, but is \"{}\"",
         name, kLongestString, excerpt(value));
  }
  if (limits.plain_name) check_plain_name(value, name);
  if (!limits.choices.empty() && value != preset) check_known(name, value, limits.choices);
}

void check_count(std::size_t count, const std::string& name) {
  if (count <= kLongestList) return;
  fail(ErrorCode::invalid, "{} must be a list of at most {}, but has {}", name, kLongestList,
       count);
}

template <class Value>
void check_value(const Value& value, const Value& preset, const Limits& limits,
                 const std::string& name) {
  if constexpr (std::is_same_v<Value, std::string>) {
    check_string(value, preset, limits, name);
  } else if constexpr (std::is_same_v<Value, std::vector<LayerOptions>>) {
    check_count(value.size(), name);
  } else if constexpr (std::is_same_v<Value, std::vector<std::int64_t>>) {
    check_count(value.size(), name);
    for (const std::int64_t item : value) check_number(item, limits, "Every number of " + name);
  } else if constexpr (std::is_same_v<Value, std::optional<double>>) {
    if (value) check_number(*value, limits, name);
  } else if constexpr (std::is_arithmetic_v<Value> && !std::is_same_v<Value, bool>) {
    check_number(value, limits, name);
  }
}

template <class Owner>
void check_limits_of(const Key<Owner>& key, const Owner& owner, const std::string& name) {
  std::visit(
      [&](auto get) {
        const Owner defaults;
        check_value(value_of(get, owner), value_of(get, defaults), key.limits, name);
      },
      key.field);
}

}  // namespace

bool is_section(const std::string& path) {
  const std::string prefix = path + ".";
  return std::any_of(job_keys().begin(), job_keys().end(),
                     [&](const Key<Job>& key) { return key.path.starts_with(prefix); });
}

void check_limits(const Key<Job>& key, const Job& owner, const std::string& name) {
  check_limits_of(key, owner, name);
}

void check_limits(const Key<LayerOptions>& key, const LayerOptions& owner,
                  const std::string& name) {
  check_limits_of(key, owner, name);
}

std::string type_name(const Key<Job>& key) {
  return type_name_of(key);
}
std::string type_name(const Key<LayerOptions>& key) {
  return type_name_of(key);
}

}  // namespace cohort
