#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <string_view>
#include <type_traits>

#include "base/fail.h"
#include "base/files.h"
#include "base/names.h"
#include "formats/toml_text.h"
#include "job/job_file.h"
#include "job/key_table.h"
#include "model/layers/layer.h"

namespace cohort::job {
namespace {

// ---- from TOML to a job
//
// What a user is told who has made a mistake:
//
//   unknown key        job.toml:3: unknown key train.epcohs; did you mean train.epochs?
//   unknown section    job.toml:1: unknown section trian; did you mean train?
//   wrong type         job.toml:2: train.batch must be a whole number, but is the string "ten"
//   outside limits     job.toml:2: train.batch must be from 1 to …, but is 0
//   by --set           --set train.epcohs=1: unknown key train.epcohs; did you mean train.epochs?

std::string did_you_mean(const std::string& name) {
  return name.empty() ? "" : fmt::format("; did you mean {}?", name);
}

/// Puts the values of a TOML tree where the key table says, and blames the line they stand in. A
/// table of the tree is a section, unless a key of that path takes it. The first thing that is
/// wrong throws Error(invalid); the job is then half read, and nobody shall use it.
class JobReader {
 public:
  /// `origin` is the file, or the whole "--set a.b=v"; the latter has no lines.
  JobReader(Job& job, std::string origin, bool has_lines)
      : job_(job), origin_(std::move(origin)), has_lines_(has_lines) {}

  /// All that is below `prefix` ("" for the whole file).
  void read_table(const toml::table& table, const std::string& prefix) const {
    for (const auto& [key, node] : table) {
      const std::string name(key.str());
      read_node(prefix.empty() ? name : prefix + "." + name, node, key.source());
    }
  }

  /// What stands at `path`: a value, a section, or something that is unknown. `place` is where its
  /// key stands.
  void read_node(const std::string& path, const toml::node& node,
                 const toml::source_region& place) const {
    const auto& keys = job_keys();
    const auto known = std::find_if(keys.begin(), keys.end(),
                                    [&](const Key<Job>& key) { return key.path == path; });
    if (known != keys.end()) {
      read_value(*known, job_, node, path);
    } else if (!is_section(path)) {
      blame(place, "unknown {} {}{}", node.is_table() ? "section" : "key", excerpt(path),
            did_you_mean(nearest_key(path, node.is_table())));
    } else if (!node.is_table()) {
      blame(place, "{} must be a section with keys of its own, but is {}", path,
            formats::description_of(node));
    } else {
      read_table(*node.as_table(), path);
    }
  }

 private:
  /// Throws with "FILE:LINE: " or "--set …: " in front.
  template <class... Args>
  [[noreturn]] void blame(const toml::source_region& place, fmt::format_string<Args...> format,
                          Args&&... args) const {
    const std::string line = has_lines_ ? fmt::format(":{}", place.begin.line) : "";
    throw Error(ErrorCode::invalid, fmt::format("{}{}: {}", origin_, line,
                                                fmt::format(format, std::forward<Args>(args)...)));
  }

  /// One value: of the right type, then written, then within its limits. `name` is what messages
  /// call it.
  template <class Owner>
  void read_value(const Key<Owner>& key, Owner& owner, const toml::node& node,
                  const std::string& name) const {
    const bool fits = std::visit([&](auto get) { return take(node, get(owner)); }, key.field);
    if (!fits) {
      blame(node.source(), "{} must be {}, but is {}", name, type_name(key),
            formats::description_of(node));
    }
    try {
      check_limits(key, owner, name);
    } catch (const Error& error) {
      blame(node.source(), "{}", error.what());
    }
  }

  // One take() for each type that a key can have. All but those below are types of TOML as they
  // are; a seed is unsigned here and signed there, and comes back by the same cast.

  /// Whether `node` has the type of `value`; if so `value` becomes it.
  template <class Value>
  bool take(const toml::node& node, Value& value) const {
    using Toml = std::conditional_t<std::is_same_v<Value, std::uint64_t>, std::int64_t, Value>;
    const auto* found = node.as<Toml>();
    if (found != nullptr) value = static_cast<Value>(found->get());
    return found != nullptr;
  }

  bool take(const toml::node& node, double& value) const {
    // Not node.value<double>(): it has none for whole numbers that a double holds only about.
    if (const auto* whole = node.as_integer()) {
      value = static_cast<double>(whole->get());
    } else if (const auto* number = node.as_floating_point()) {
      value = number->get();
    } else {
      return false;
    }
    return true;
  }

  template <class Value>
  bool take(const toml::node& node, std::optional<Value>& value) const {
    return take(node, value.emplace());
  }

  bool take(const toml::node& node, std::vector<std::int64_t>& value) const {
    const toml::array* items = node.as_array();
    if (items == nullptr) return false;
    value.clear();
    for (const toml::node& item : *items) {
      if (!item.is_integer()) return false;
      value.push_back(item.as_integer()->get());
    }
    return true;
  }

  bool take(const toml::node& node, std::vector<LayerOptions>& value) const {
    const toml::array* items = node.as_array();
    if (items == nullptr) return false;
    value.clear();
    for (const toml::node& item : *items) {
      if (!item.is_table()) return false;
      value.push_back(read_layer(*item.as_table()));
    }
    return true;
  }

  /// The type first, wherever it stands: which other keys there may be depends on it.
  LayerOptions read_layer(const toml::table& table) const {
    LayerOptions layer;
    const toml::node* type = table.get("type");
    if (type == nullptr) {
      blame(table.source(), "a layer has no type; it can be {}", one_of(model::layer_types()));
    }
    read_layer_key("type", *type, type->source(), layer);
    try {
      check_known("layer type", layer.type, model::layer_types());
    } catch (const Error& error) {
      blame(type->source(), "{}", error.what());
    }
    for (const auto& [key, node] : table) {
      if (key.str() != "type") read_layer_key(std::string(key.str()), node, key.source(), layer);
    }
    return layer;
  }

  /// One key of a layer. An unknown one, or one that this type does not take, is told with all it
  /// takes.
  void read_layer_key(const std::string& name, const toml::node& node,
                      const toml::source_region& place, LayerOptions& layer) const {
    for (const Key<LayerOptions>& key : layer_option_keys()) {
      if (key.path != name || !layer_takes(layer.type, name)) continue;
      return read_value(key, layer, node, fmt::format("the layer's {}", name));
    }
    std::vector<std::string> known = model::layer_keys(layer.type);
    const std::string nearest = nearest_name(name, known);
    blame(place, "unknown key {} of a layer of type {}{} It takes {}", excerpt(name), layer.type,
          nearest.empty() ? "." : did_you_mean(nearest), known.empty() ? "none" : list(known));
  }

  static bool layer_takes(const std::string& type, const std::string& name) {
    if (name == "type") return true;
    const std::vector<std::string>& keys = model::layer_keys(type);
    return std::find(keys.begin(), keys.end(), name) != keys.end();
  }

  static std::string list(const std::vector<std::string>& names) {
    return fmt::format("{}", fmt::join(names, ", "));
  }

  Job& job_;
  std::string origin_;
  bool has_lines_;
};

// ---- files and --set

/// `text` as TOML; a bare word, a path and whatever else is not TOML is a string.
toml::table parse_override_value(const std::string& text) {
  try {
    toml::table parsed = formats::parse_toml("value = " + text, "--set");
    if (parsed.size() == 1) return parsed;
  } catch (const Error&) {
  }
  return toml::table{{"value", text}};
}

/// Only there a number or a date may stand for the text that it was written as.
bool is_string_key(const std::string& path) {
  return std::any_of(job_keys().begin(), job_keys().end(), [&](const Key<Job>& key) {
    return key.path == path && std::holds_alternative<std::string& (*)(Job&)>(key.field);
  });
}

/// One "a.b=value" of --set, which wins over what the file says.
void apply_override(Job& job, const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    fail(ErrorCode::invalid, "--set {}: write it as key=value, as in --set train.epochs=3",
         excerpt(text));
  }
  const std::string path = text.substr(0, equals);
  const std::string value_text = text.substr(equals + 1);
  toml::table parsed = parse_override_value(value_text);
  // --set job.name=7 names the job "7".
  if (is_string_key(path) && !parsed.get("value")->is_string()) {
    parsed.insert_or_assign("value", value_text);
  }
  const toml::node& value = *parsed.get("value");
  JobReader(job, "--set " + excerpt(text, 100), false).read_node(path, value, value.source());
}

/// A job file is written by people.
constexpr std::uint64_t kMostBytes = 4 << 20;

/// Reads at most kMostBytes of it. A folder is refused by a sentence of its own.
toml::table parse_file(const std::filesystem::path& file) {
  std::error_code cannot_tell;  // Then reading it says what is wrong.
  if (std::filesystem::is_directory(file, cannot_tell)) {
    fail(ErrorCode::invalid, "{} is a folder; give a job file, such as examples/mnist.toml",
         file.string());
  }
  return formats::parse_toml(read_file(file, Links::follow, kMostBytes), file.string());
}

}  // namespace

// First the file, then each --set in its order, all by the same reader: what comes later wins.
Job load_job(const std::filesystem::path& file, const std::vector<std::string>& overrides) {
  Job job;
  JobReader(job, file.string(), true).read_table(parse_file(file), "");
  for (const std::string& text : overrides) apply_override(job, text);
  return job;
}

}  // namespace cohort::job
