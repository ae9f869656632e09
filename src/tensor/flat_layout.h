#pragma once

#include <cohort/model.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace cohort::tensor {

/// Which tensors of a model stand in flat memory, and where. Everything above this room speaks of a
/// model as three buffers of floats: its trained parameters, their gradients (in the same places)
/// and its buffers.
///
///   parameters   | 0.weight ........ 0 0 | 0.bias 0 0 0 | 2.weight ............ |
///                ^ 0                     ^ offset, a multiple of 16 floats      ^ size
///
/// Every tensor starts on a 64-byte boundary; the floats between two tensors are padding and stay
/// zero under every optimizer. A layout is a function of names, shapes and order alone, so all
/// workers of a job compute the same one, and checkpoints and servers count on it.

/// One tensor's place.
struct FlatEntry {
  std::string name;
  std::vector<std::int64_t> shape;
  std::size_t offset = 0;  ///< In floats.
  std::size_t count = 0;   ///< Floats of the tensor, padding not among them.
};

struct FlatLayout {
  std::vector<FlatEntry> entries;
  std::size_t size = 0;  ///< In floats, padding included; a multiple of 16.

  /// The layout of these tensors in their order. Throws Error(unsupported) for one that is not a
  /// dense float32 tensor on the CPU.
  static FlatLayout of(const std::vector<NamedTensor>& tensors);
};

/// Whether parameters marked as tables (TableMark) live in the flat memory like all others, or
/// apart, with the strategy keeping them by rows (TableRows).
enum class Tables { among_parameters, apart };

/// The parameters that are trained, in their order in the model; without tables where those are
/// apart. Frozen ones are left out: there is nothing to reduce or to update. A tensor that has two
/// names (tied weights) is there once, under the first.
std::vector<NamedTensor> trained_parameters(Model& model, Tables tables);

/// The buffers of floats, each tensor once. Other buffers, such as counters, stay where they are:
/// every rank has and changes them alike.
std::vector<NamedTensor> float_buffers(Model& model);

/// The parameters that are tables, in their order in the model.
std::vector<NamedTensor> tables_of(Model& model);

/// The layouts of a model's trained_parameters() and float_buffers().
struct ModelLayout {
  FlatLayout parameters;
  FlatLayout buffers;

  static ModelLayout of(Model& model, Tables tables = Tables::among_parameters);
};

/// The memory a model's tensors are views of, as a ModelLayout says. It does not own it: who does
/// (a private mapping, memory shared with other ranks) is the strategy's business.
struct FlatMemory {
  std::span<float> parameters;
  std::span<float> gradients;  ///< As long as `parameters`, with the same places.
  std::span<float> buffers;
};

/// The tensor of this entry in `memory`, as a view.
torch::Tensor view_of(std::span<float> memory, const FlatEntry& entry);

/// Copies the values of the model's parameters and float buffers to where they will live.
void copy_values(Model& model, const FlatMemory& memory, Tables tables = Tables::among_parameters);

}  // namespace cohort::tensor
