#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/fail.h"

namespace cohort {

/// JSON that others may have written, and may have written wrongly. Three layers, each for who
/// needs no more:
///   parse_json()    text to a value, or to a discarded value where it is no JSON
///   integer_at()    one whole number of an object, within a range
///   JsonFields      an object read field by field, errors naming file and path
/// Handling a value is recursive at some point of any library, so how deep a text nests is looked
/// at, on its bytes, before anything is made of it.

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

/// Whether `value` is a whole number from `least` to `most`. The library keeps numbers above
/// INT64_MAX as unsigned ones, and would hand them out as negative.
template <class Json>
bool is_integer_in(const Json& value, std::int64_t least, std::int64_t most) {
  if (!value.is_number_integer()) return false;
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (value.is_number_unsigned() && value.template get<std::uint64_t>() > kMost) return false;
  const auto number = value.template get<std::int64_t>();
  return number >= least && number <= most;
}

/// The whole number that `value` is; `name` is what errors call it. Throws Error(corrupt) where it
/// is none or not from `least` to `most`.
template <class Json>
std::int64_t integer_of(const Json& value, const char* name, std::int64_t least,
                        std::int64_t most) {
  if (is_integer_in(value, least, most)) return value.template get<std::int64_t>();
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

/// An object read field by field. Whatever is missing, of another type, out of range or too long is
/// Error(corrupt) with one sentence that names the file and the field by its whole path:
/// "model.json: data.outputs is "ten", not a whole number from …". Fields that nobody asks for are
/// ignored, so that later versions can add some. Refers to the parsed value and copies nothing.
class JsonFields {
 public:
  /// `object` must outlive this and all that object() and objects() return; `file` and `path` are
  /// what errors call it. Throws where it is no object.
  JsonFields(const nlohmann::json& object, std::string file, std::string path = "");

  bool has(const char* key) const { return object_.contains(key); }
  JsonFields object(const char* key) const;
  std::string text(const char* key) const;
  bool flag(const char* key) const;
  std::int64_t integer(const char* key, std::int64_t least, std::int64_t most) const;
  /// A finite number.
  double number(const char* key) const;

  std::vector<std::int64_t> integers(const char* key, std::int64_t least, std::int64_t most,
                                     std::size_t longest) const;
  /// Finite numbers.
  std::vector<double> numbers(const char* key) const;
  /// Texts that need not be UTF-8: each a string, or the list of its bytes; see text_json().
  std::vector<std::string> texts(const char* key) const;
  std::string any_text(const char* key) const;
  /// The objects of a list; in paths "key[1]" is the first.
  std::vector<JsonFields> objects(const char* key, std::size_t longest) const;

  /// Throws Error(corrupt): "FILE: PATH.KEY <what is wrong>".
  [[noreturn]] void wrong(const char* key, const std::string& what) const;

 private:
  const nlohmann::json& at(const char* key) const;
  const nlohmann::json& list(const char* key, std::size_t longest) const;

  const nlohmann::json& object_;
  std::string file_;
  std::string path_;  // From the top of the file to this object; empty at the top.
};

/// A text as a JSON string or, where it is not UTF-8, which JSON cannot hold, as the list of its
/// bytes. JsonFields::any_text() and texts() read both.
nlohmann::ordered_json text_json(const std::string& text);
nlohmann::ordered_json text_json(const std::vector<std::string>& texts);

}  // namespace cohort
