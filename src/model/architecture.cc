#include "model/architecture.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <variant>

#include "model/layers/layer.h"

namespace cohort::model {
namespace {

using PlanJson = nlohmann::ordered_json;

/// Far more than any network has, and few enough that following shapes through them is no work.
constexpr std::size_t kMostLayers = 10'000;
constexpr std::int64_t kLargestOption = 1'000'000'000;

/// A member of LayerOptions, by its type; strings and nested layers are handled apart.
using LayerField = std::variant<std::int64_t LayerOptions::*, bool LayerOptions::*,
                                std::optional<double> LayerOptions::*>;

struct NamedField {
  const char* key;
  LayerField field;
};

/// Every option of every type, in the order they are written. Which of them a type reads is in its
/// LayerType::keys, so a new option needs a line here and a key there.
const std::vector<NamedField>& layer_fields() {
  static const std::vector<NamedField> fields = {
      {"out", &LayerOptions::out},       {"kernel", &LayerOptions::kernel},
      {"stride", &LayerOptions::stride}, {"padding", &LayerOptions::padding},
      {"heads", &LayerOptions::heads},   {"vocabulary", &LayerOptions::vocabulary},
      {"p", &LayerOptions::p},           {"bias", &LayerOptions::bias},
      {"causal", &LayerOptions::causal}, {"positions", &LayerOptions::positions},
      {"sparse", &LayerOptions::sparse},
  };
  return fields;
}

bool reads(const LayerType& type, std::string_view key) {
  return std::ranges::find(type.keys, key) != type.keys.end();
}

PlanJson value_json(std::int64_t value) {
  return value;
}
PlanJson value_json(bool value) {
  return value;
}
PlanJson value_json(const std::optional<double>& value) {
  return value ? PlanJson(*value) : PlanJson(nullptr);
}

void read_field(const JsonFields& fields, const char* key, std::int64_t& value) {
  value = fields.integer(key, 0, kLargestOption);
}
void read_field(const JsonFields& fields, const char* key, bool& value) {
  value = fields.flag(key);
}
void read_field(const JsonFields& fields, const char* key, std::optional<double>& value) {
  value = fields.number(key);
  if (!(*value >= 0 && *value <= 1)) fields.wrong(key, "is not from 0 to 1");
}

PlanJson layer_json(const LayerPlan& plan) {
  PlanJson json = {{"type", plan.type->name}};
  for (const NamedField& named : layer_fields()) {
    if (!reads(*plan.type, named.key)) continue;
    std::visit([&](auto member) { json[named.key] = value_json(plan.options.*member); },
               named.field);
    if (json[named.key].is_null()) json.erase(named.key);
  }
  if (!plan.nested.empty()) json["layers"] = to_json(plan.nested);
  json["input"] = plan.input.sizes;
  json["output"] = plan.output.sizes;
  return json;
}

std::vector<LayerOptions> read_layers(const JsonFields& fields, const char* key) {
  std::vector<LayerOptions> layers;
  for (const JsonFields& entry : fields.objects(key, kMostLayers)) {
    LayerOptions& layer = layers.emplace_back();
    layer.type = entry.text("type");
    const LayerType& type = layer_type(layer.type);
    for (const NamedField& named : layer_fields()) {
      if (!reads(type, named.key) || !entry.has(named.key)) continue;
      std::visit([&](auto member) { read_field(entry, named.key, layer.*member); }, named.field);
    }
    if (reads(type, "layers")) layer.layers = read_layers(entry, "layers");
  }
  return layers;
}

/// The shapes in the text must be those of the plan, which was made of types and options alone.
void check_shapes(const JsonFields& fields, const char* key, const std::vector<LayerPlan>& plans) {
  const auto entries = fields.objects(key, kMostLayers);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto sizes = [&](const char* which) {
      return entries[i].integers(which, 0, std::int64_t{1} << 40, 8);
    };
    if (sizes("input") != plans[i].input.sizes) {
      entries[i].wrong("input", "is not the shape that this layer gets");
    }
    if (sizes("output") != plans[i].output.sizes) {
      entries[i].wrong("output", "is not the shape that this layer gives");
    }
    if (!plans[i].nested.empty()) check_shapes(entries[i], "layers", plans[i].nested);
  }
}

}  // namespace

PlanJson to_json(const std::vector<LayerPlan>& plans) {
  PlanJson list = PlanJson::array();
  for (const LayerPlan& plan : plans) list.push_back(layer_json(plan));
  return list;
}

// What is read is only types and options: shapes follow from these by the same arithmetic as for a
// job file, and those in the text are compared with it. So a file that was changed by hand, or is
// of another version whose layers compute their shapes otherwise, is refused and not believed.
std::vector<LayerPlan> read_architecture(const JsonFields& fields, const char* key,
                                         const tensor::DataSpec& spec) {
  std::vector<LayerPlan> plans;
  try {
    plans = plan_network(read_layers(fields, key), spec);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid) throw;
    fields.wrong(key, fmt::format("cannot be: {}", error.what()));
  }
  check_shapes(fields, key, plans);
  return plans;
}

}  // namespace cohort::model
