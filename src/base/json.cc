#include "base/json.h"

#include <cmath>
#include <limits>
#include <utility>

namespace cohort {
namespace {

using FieldJson = nlohmann::json;

bool is_finite_number(const FieldJson& value) {
  return value.is_number() && std::isfinite(value.get<double>());
}

/// Reads what text_json() writes. False where it is neither a string nor a list of bytes.
bool read_text(const FieldJson& value, std::string& text) {
  if (value.is_string()) {
    text = value.get<std::string>();
    return true;
  }
  if (!value.is_array()) return false;
  text.clear();
  for (const FieldJson& byte : value) {
    if (!is_integer_in(byte, 0, 255)) return false;
    text += static_cast<char>(byte.get<int>());
  }
  return true;
}

/// What an error quotes of a value. A large list or object is only called what it is: dumping it
/// could take as much memory again as the file.
std::string shown(const FieldJson& value) {
  return excerpt(value.is_structured() && value.size() > 8 ? value.type_name() : value.dump());
}

}  // namespace

bool nests_at_most(std::string_view text, int depth) {
  int deep = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') {
      for (++at; at < text.size() && text[at] != '"'; ++at) {
        if (text[at] == '\\') ++at;
      }
    } else if (c == '[' || c == '{') {
      if (++deep > depth) return false;
    } else if (c == ']' || c == '}') {
      --deep;
    }
  }
  return true;
}

JsonFields::JsonFields(const FieldJson& object, std::string file, std::string path)
    : object_(object), file_(std::move(file)), path_(std::move(path)) {
  if (object_.is_object()) return;
  fail(ErrorCode::corrupt, "{}: {} is not a JSON object", file_, path_.empty() ? "it" : path_);
}

void JsonFields::wrong(const char* key, const std::string& what) const {
  fail(ErrorCode::corrupt, "{}: {}{}{} {}", file_, path_, path_.empty() ? "" : ".", key, what);
}

const FieldJson& JsonFields::at(const char* key) const {
  const auto found = object_.find(key);
  if (found == object_.end()) wrong(key, "is missing");
  return *found;
}

const FieldJson& JsonFields::list(const char* key, std::size_t longest) const {
  const FieldJson& value = at(key);
  if (!value.is_array()) wrong(key, fmt::format("is {}, not a list", shown(value)));
  if (value.size() > longest) {
    wrong(key, fmt::format("has {} entries, more than the {} there can be", value.size(), longest));
  }
  return value;
}

JsonFields JsonFields::object(const char* key) const {
  return {at(key), file_, path_.empty() ? key : path_ + "." + key};
}

std::string JsonFields::text(const char* key) const {
  const FieldJson& value = at(key);
  if (!value.is_string()) wrong(key, fmt::format("is {}, not a text", shown(value)));
  return value.get<std::string>();
}

bool JsonFields::flag(const char* key) const {
  const FieldJson& value = at(key);
  if (!value.is_boolean()) wrong(key, fmt::format("is {}, not true or false", shown(value)));
  return value.get<bool>();
}

std::int64_t JsonFields::integer(const char* key, std::int64_t least, std::int64_t most) const {
  const FieldJson& value = at(key);
  if (!is_integer_in(value, least, most)) {
    wrong(key, fmt::format("is {}, not a whole number from {} to {}", shown(value), least, most));
  }
  return value.get<std::int64_t>();
}

double JsonFields::number(const char* key) const {
  const FieldJson& value = at(key);
  if (!is_finite_number(value)) wrong(key, fmt::format("is {}, not a finite number", shown(value)));
  return value.get<double>();
}

std::vector<std::int64_t> JsonFields::integers(const char* key, std::int64_t least,
                                               std::int64_t most, std::size_t longest) const {
  std::vector<std::int64_t> result;
  for (const FieldJson& value : list(key, longest)) {
    if (!is_integer_in(value, least, most)) {
      wrong(key,
            fmt::format("has {}, not a whole number from {} to {}", shown(value), least, most));
    }
    result.push_back(value.get<std::int64_t>());
  }
  return result;
}

std::vector<double> JsonFields::numbers(const char* key) const {
  std::vector<double> result;
  for (const FieldJson& value : list(key, std::numeric_limits<std::size_t>::max())) {
    if (!is_finite_number(value)) {
      wrong(key, fmt::format("has {}, not a finite number", shown(value)));
    }
    result.push_back(value.get<double>());
  }
  return result;
}

std::vector<std::string> JsonFields::texts(const char* key) const {
  std::vector<std::string> result;
  for (const FieldJson& value : list(key, std::numeric_limits<std::size_t>::max())) {
    if (!read_text(value, result.emplace_back())) {
      wrong(key, fmt::format("has {}, not a text", shown(value)));
    }
  }
  return result;
}

std::string JsonFields::any_text(const char* key) const {
  std::string text;
  if (!read_text(at(key), text)) wrong(key, fmt::format("is {}, not a text", shown(at(key))));
  return text;
}

std::vector<JsonFields> JsonFields::objects(const char* key, std::size_t longest) const {
  std::vector<JsonFields> result;
  for (const FieldJson& value : list(key, longest)) {
    const std::string name = fmt::format("{}[{}]", key, result.size() + 1);
    result.emplace_back(value, file_, path_.empty() ? name : path_ + "." + name);
  }
  return result;
}

nlohmann::ordered_json text_json(const std::string& text) {
  nlohmann::ordered_json value = text;
  try {
    value.dump();  // The library's own check; it throws where the text is not UTF-8.
    return value;
  } catch (const nlohmann::json::exception&) {
  }
  value = nlohmann::ordered_json::array();
  for (const char c : text) value.push_back(static_cast<unsigned char>(c));
  return value;
}

nlohmann::ordered_json text_json(const std::vector<std::string>& texts) {
  auto list = nlohmann::ordered_json::array();
  for (const std::string& text : texts) list.push_back(text_json(text));
  return list;
}

}  // namespace cohort
