#pragma once

#include <cohort/job.h>
#include <fmt/format.h>

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "model/layers/shape.h"
#include "tensor/data_spec.h"

namespace cohort {

struct LayerType;

/// A layer before any tensor is made: everything that can be wrong with it has been checked.
struct LayerPlan {
  const LayerType* type = nullptr;
  std::string number;    ///< As the user counts: "3"; inside a residual "4.2".
  LayerOptions options;  ///< With every default filled in.
  Shape input;
  Shape output;
  std::int64_t weights = 0;       ///< Trained floats, about; see count_weights().
  std::vector<LayerPlan> nested;  ///< residual: its branch.

  /// "layer 3 (conv2d)"
  std::string title() const { return fmt::format("layer {} ({})", number, options.type); }
};

/// Follows the shape of a sample through `layers`; `prefix` goes before their numbers. Throws
/// Error(invalid) naming the layer that cannot take what it gets.
std::vector<LayerPlan> plan_layers(const std::vector<LayerOptions>& layers, const Shape& input,
                                   const DataSpec& spec, const std::string& prefix = "");

/// The whole network: from the data's inputs to what the loss compares with its targets.
std::vector<LayerPlan> plan_network(const std::vector<LayerOptions>& layers, const DataSpec& spec);

/// Throws Error(invalid): "layer 3 (conv2d): …".
template <class... Args>
[[noreturn]] void fail_layer(const LayerPlan& layer, fmt::format_string<Args...> format,
                             Args&&... args) {
  fail(ErrorCode::invalid, "{}: {}", layer.title(),
       fmt::format(format, std::forward<Args>(args)...));
}

/// Adds a tensor of these sizes to the layer's weights. Fails where it is more than any machine can
/// hold, so that no size is computed of it that has no room in a number.
void count_weights(LayerPlan& layer, std::initializer_list<std::int64_t> sizes);

/// Fails where the layer gets token ids instead of floats.
void require_embedded(const LayerPlan& layer);

/// Fails unless a number the user gave is positive. `hint` says what would be valid.
void require_positive(const LayerPlan& layer, const char* key, std::int64_t value,
                      const char* hint);

}  // namespace cohort
