#include "job/key_table.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <type_traits>

#include "base/fail.h"
#include "base/names.h"

namespace cohort::job {
namespace {

// What no key needs more of, and what a hostile file could otherwise fill memory with.
constexpr std::size_t kLongestName = 100;
constexpr std::size_t kLongestString = 4000;  // Paths end there.
constexpr std::size_t kLongestList = 10'000;

std::string last_part(const std::string& path) {
  return path.substr(path.rfind('.') + 1);
}

// The types that a key can have, as messages call them. One for each alternative of Field.
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
std::string type_words(const std::optional<bool>&) {
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

/// Limits that are infinite do not let infinity in: no key means it.
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

/// What becomes a part of a path must not lead out of the folder it is meant for.
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

/// `preset` is the default, which is always allowed: mostly an empty string that says nothing was
/// chosen.
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

/// Which limits apply follows from the type; layers in a list are checked one by one by whoever
/// walks over them, and true or false has no limits.
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

/// The default is that of a fresh owner, so that it is written nowhere but in include/cohort/job.h.
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

// The key that was probably meant. One whose last part is right and whose section is wrong (a
// `momentum` under [train]) is meant more likely than one that is spelt alike; among several of
// that name the one of the same section, then the nearest.
std::string nearest_key(const std::string& path, bool section) {
  std::vector<std::string> same_name, known;
  for (const Key<Job>& key : job_keys()) {
    for (std::size_t dot = key.path.find('.'); section && dot != std::string::npos;
         dot = key.path.find('.', dot + 1)) {
      known.push_back(key.path.substr(0, dot));
    }
    if (section) continue;
    known.push_back(key.path);
    if (last_part(key.path) == last_part(path)) same_name.push_back(key.path);
  }
  if (same_name.size() > 1) {
    // One in the same section is meant rather than one elsewhere.
    const std::string section_name = path.substr(0, path.find('.') + 1);
    std::vector<std::string> here;
    std::ranges::copy_if(same_name, std::back_inserter(here),
                         [&](const auto& name) { return name.starts_with(section_name); });
    if (here.size() == 1) return here[0];
  }
  if (same_name.size() == 1) return same_name[0];
  return nearest_name(path, same_name.empty() ? known : same_name);
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

}  // namespace cohort::job
