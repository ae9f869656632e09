#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/excerpt.h"
#include "base/fail.h"

namespace cohort {

/// The one way by which text becomes JSON. Handling a value is recursive at some point of any
/// library, so how deep a text nests is looked at, on its bytes, before anything is made of it.

/// Nothing that Cohort writes or reads nests half as deep.
inline constexpr int kDeepestJson = 32;

/// Whether the brackets of `text`, those in strings aside, are never more than `depth` deep.
bool nests_at_most(std::string_view text, int depth);

/// The text as a value; a discarded one (which is neither an object nor anything else) where it is
/// no JSON or nests too deep. Never throws for what is in the text, so never quotes it either.
template <class Json = nlohmann::json>
Json parse_json(std::string_view text) {
  if (!nests_at_most(text, kDeepestJson)) return Json(nlohmann::detail::value_t::discarded);
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

/// The whole number that `value` is; `name` is what errors call it. Throws Error(corrupt) where it
/// is none or not from `least` to `most`.
template <class Json>
std::int64_t integer_of(const Json& value, const char* name, std::int64_t least,
                        std::int64_t most) {
  const bool too_large = value.is_number_unsigned() &&
                         value.template get<std::uint64_t>() > static_cast<std::uint64_t>(most);
  if (value.is_number_integer() && !too_large) {
    const auto number = value.template get<std::int64_t>();
    if (number >= least && number <= most) return number;
  }
  fail(ErrorCode::corrupt, "its \"{}\" is {}, not a whole number from {} to {}", name,
       excerpt(value.dump()), least, most);
}

/// That under `key` of an object.
template <class Json>
std::int64_t integer_at(const Json& object, const char* key, std::int64_t least,
                        std::int64_t most) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (!object.is_object() || found == object.end()) {
    fail(ErrorCode::corrupt, "there is no \"{}\" in it", key);
  }
  return integer_of(*found, key, least, most);
}

}  // namespace cohort
