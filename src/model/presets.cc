// Presets: lists of layers with the sizes that a job may change. Nothing after this file knows that
// there was one.
//
//   mlp        flatten, (linear, relu) for each of `hidden` [512, 256], linear
//   lenet      (conv 32, relu, pool), (conv 64, relu, pool), linear 128, relu, linear
//   resnet8    conv, batch norm, relu; three residuals of `width` 16, 32, 64; average, linear
//   gpt-mini   embedding, `depth` 4 transformers of `width` 256 and `heads` 4, layer norm, linear
#include "base/fail.h"
#include "base/names.h"
#include "model/make_model.h"

namespace cohort::model {
namespace {

using Layers = std::vector<LayerOptions>;

LayerOptions simple(const char* type) {
  return {.type = type};
}
LayerOptions linear(std::int64_t out) {
  return {.type = "linear", .out = out};
}
LayerOptions conv3x3(std::int64_t out, std::int64_t stride = 1, bool bias = true) {
  return {.type = "conv2d", .out = out, .kernel = 3, .stride = stride, .padding = 1, .bias = bias};
}

/// What the job gives for `key`, or the preset's own where it gives nothing (0).
std::int64_t positive_or(std::int64_t given, std::int64_t preset, const char* key) {
  if (given < 0)
    fail(ErrorCode::invalid, "model.{} = {} is not possible; 1 or more is", key, given);
  return given == 0 ? preset : given;
}

void require_images(const tensor::DataSpec& spec, const char* preset) {
  if (!spec.tokens && spec.input_shape.size() == 3) return;
  fail(ErrorCode::invalid,
       "the preset {} is for images (channels x height x width), but the data has the shape {}",
       preset, to_string(Shape{spec.input_shape, spec.tokens}));
}

Layers mlp(const ModelOptions& options, const tensor::DataSpec& spec) {
  auto widths = options.hidden;
  if (widths.empty()) widths = {512, 256};
  Layers layers = {simple("flatten")};
  for (const auto width : widths) {
    layers.push_back(linear(positive_or(width, 0, "hidden")));
    layers.push_back(simple("relu"));
  }
  layers.push_back(linear(spec.outputs));
  return layers;
}

Layers lenet(const ModelOptions&, const tensor::DataSpec& spec) {
  require_images(spec, "lenet");
  const LayerOptions pool{.type = "maxpool", .kernel = 2};
  return {conv3x3(32), simple("relu"),    pool,        conv3x3(64),    simple("relu"),
          pool,        simple("flatten"), linear(128), simple("relu"), linear(spec.outputs)};
}

/// Each residual after the first has half the side and twice the channels.
Layers resnet8(const ModelOptions& options, const tensor::DataSpec& spec) {
  require_images(spec, "resnet8");
  auto width = positive_or(options.width, 16, "width");
  Layers layers = {conv3x3(width, 1, false), simple("batchnorm"), simple("relu")};
  for (std::int64_t stride : {1, 2, 2}) {
    width *= stride;
    layers.push_back({.type = "residual",
                      .layers = {conv3x3(width, stride, false), simple("batchnorm"), simple("relu"),
                                 conv3x3(width, 1, false), simple("batchnorm")}});
    layers.push_back(simple("relu"));
  }
  layers.push_back(simple("avgpool"));
  layers.push_back(simple("flatten"));
  layers.push_back(linear(spec.outputs));
  return layers;
}

Layers gpt_mini(const ModelOptions& options, const tensor::DataSpec& spec) {
  if (!spec.tokens) {
    fail(ErrorCode::invalid, "the preset gpt-mini is for text, but the data has the shape {}",
         to_string(Shape{spec.input_shape, false}));
  }
  const auto width = positive_or(options.width, 256, "width");
  const auto heads = positive_or(options.heads, 4, "heads");
  Layers layers = {{.type = "embedding", .out = width, .positions = true}};
  const auto depth = positive_or(options.depth, 4, "depth");
  for (std::int64_t i = 0; i < depth; ++i) {
    layers.push_back({.type = "transformer", .heads = heads, .causal = true});
  }
  layers.push_back(simple("layernorm"));
  layers.push_back(linear(spec.outputs));
  return layers;
}

struct Preset {
  const char* name;
  Layers (*layers)(const ModelOptions&, const tensor::DataSpec&);
};
constexpr Preset kPresets[] = {
    {"mlp", mlp}, {"lenet", lenet}, {"resnet8", resnet8}, {"gpt-mini", gpt_mini}};

}  // namespace

const std::vector<std::string>& preset_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> result;
    for (const auto& preset : kPresets) result.emplace_back(preset.name);
    return result;
  }();
  return names;
}

std::vector<LayerOptions> preset_layers(const ModelOptions& options, const tensor::DataSpec& spec) {
  check_known("the preset", options.preset, preset_names());
  for (const auto& preset : kPresets) {
    if (options.preset == preset.name) return preset.layers(options, spec);
  }
  fail(ErrorCode::invalid, "the preset \"{}\" is unknown", options.preset);
}

}  // namespace cohort::model
