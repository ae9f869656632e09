#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace cohort {

/// An object of a JSON file that others may have written, read field by field. Whatever is missing
/// or of another type, too large or too long is Error(corrupt) with one sentence that names the
/// file and the field by its whole path: "model.json: data.outputs is "ten", not a whole number
/// from …". Fields that nobody asks for are ignored, so that later versions can add some.
class JsonFields {
 public:
  /// Of the object `object`, which must outlive this; `file` and `path` are for errors. Throws
  /// where it is no object.
  JsonFields(const nlohmann::json& object, std::string file, std::string path = "");

  bool has(const char* key) const { return object_.contains(key); }
  JsonFields object(const char* key) const;
  std::string text(const char* key) const;
  bool flag(const char* key) const;
  std::int64_t integer(const char* key, std::int64_t least, std::int64_t most) const;
  /// Finite.
  double number(const char* key) const;

  std::vector<std::int64_t> integers(const char* key, std::int64_t least, std::int64_t most,
                                     std::size_t longest) const;
  std::vector<double> numbers(const char* key) const;
  /// Texts that need not be UTF-8: each a string, or the list of its bytes; see text_json().
  std::vector<std::string> texts(const char* key) const;
  std::string any_text(const char* key) const;
  /// The objects of a list.
  std::vector<JsonFields> objects(const char* key, std::size_t longest) const;

  /// Throws Error(corrupt): "FILE: PATH.KEY <what is wrong>".
  [[noreturn]] void wrong(const char* key, const std::string& what) const;

 private:
  const nlohmann::json& at(const char* key) const;
  const nlohmann::json& list(const char* key, std::size_t longest) const;

  const nlohmann::json& object_;
  std::string file_;
  std::string path_;
};

/// A text as a JSON string or, where it is not UTF-8, as the list of its bytes.
nlohmann::ordered_json text_json(const std::string& text);
nlohmann::ordered_json text_json(const std::vector<std::string>& texts);

}  // namespace cohort
