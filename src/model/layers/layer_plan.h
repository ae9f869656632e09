#pragma once

#include <cohort/job.h>
#include <fmt/format.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "tensor/data_spec.h"

namespace cohort::model {

struct LayerType;

/// A network before any tensor is made. The shape of one sample is followed through the list of
/// layers by arithmetic, and everything that can be wrong is said with the number of the layer:
///
///   conv2d out=32     1x28x28 → 32x26x26     layer 1
///   maxpool           → 32x13x13             layer 2
///   flatten, linear   → 5408 → 10            layers 3 and 4; 10 are the classes of the data
///
/// Building (LayerSequence) cannot fail on shapes any more, and the plan is also what model.json
/// stores and what the work of a sample is counted from. Plans are values without tensors; planning
/// needs nothing but its arguments, on any thread.

/// The shape of one sample on its way through a network; the batch dimension is left out.
struct Shape {
  std::vector<std::int64_t> sizes;
  bool tokens = false;  ///< Ids that still have to be embedded.

  bool is_flat() const { return !tokens && sizes.size() == 1; }
  bool is_sequence() const { return !tokens && sizes.size() == 2; }  ///< positions x features
  bool is_image() const { return !tokens && sizes.size() == 3; }     ///< channels x height x width

  std::int64_t elements() const;

  bool operator==(const Shape&) const = default;
};

/// "32x7x7"; tokens say so: "128 tokens".
std::string to_string(const Shape& shape);

/// One layer of the plan: everything that can be wrong with it has been checked.
struct LayerPlan {
  const LayerType* type = nullptr;  ///< Of the table of types, which lives as long as the process.
  std::string number;               ///< As the user counts: "3"; inside a residual "4.2".
  LayerOptions options;             ///< With every default filled in.
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
                                   const tensor::DataSpec& spec, const std::string& prefix = "");

/// The whole network: from the data's inputs to what the loss compares with its targets. Throws
/// Error(invalid) as plan_layers does, for an empty list and where the network does not end in what
/// the data has to predict; Error(no_space) where its weights are more than the machine's memory.
std::vector<LayerPlan> plan_network(const std::vector<LayerOptions>& layers,
                                    const tensor::DataSpec& spec);

// For the plan functions of the types of layers:

/// Throws Error(invalid): "layer 3 (conv2d): …".
template <class... Args>
[[noreturn]] void fail_layer(const LayerPlan& layer, fmt::format_string<Args...> format,
                             Args&&... args) {
  fail(ErrorCode::invalid, "{}: {}", layer.title(),
       fmt::format(format, std::forward<Args>(args)...));
}

/// Adds a tensor of these sizes to the layer's weights; biases and norms are not counted. Fails
/// where it is more than any machine can hold, so that no product of sizes overflows later.
void count_weights(LayerPlan& layer, std::initializer_list<std::int64_t> sizes);

/// Fails where the layer gets token ids instead of floats.
void require_embedded(const LayerPlan& layer);

/// Fails unless a number the user gave is positive. `hint` says what would be valid.
void require_positive(const LayerPlan& layer, const char* key, std::int64_t value,
                      const char* hint);

}  // namespace cohort::model
