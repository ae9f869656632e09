#pragma once

#include <cohort/model.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "tensor/flat_layout.h"
#include "tensor/gradient_sink.h"

namespace cohort {

/// The memory a model's tensors are views of. Who owns it (a private mapping, memory shared with
/// other ranks) is the strategy's business.
struct FlatMemory {
  std::span<float> parameters;
  std::span<float> gradients;
  std::span<float> buffers;
};

/// Whether parameters marked as tables (TableMark) live in the flat memory like all others, or
/// apart, with the strategy keeping them by rows (TableRows).
enum class Tables { among_parameters, apart };

/// The layouts of a model's trained parameters and of its float buffers. Frozen parameters and
/// other buffers, such as counters, stay where they are: every rank has and changes them alike.
struct ModelLayout {
  FlatLayout parameters;
  FlatLayout buffers;

  static ModelLayout of(Model& model, Tables tables = Tables::among_parameters);
};

/// The parameters that are tables, in their order in the model.
std::vector<NamedTensor> tables_of(Model& model);

/// Copies the values of the model's parameters and float buffers to where they will live.
void copy_values(Model& model, const FlatMemory& memory, Tables tables = Tables::among_parameters);

/// A model whose parameters, gradients and float buffers live in flat memory. Gradients reach the
/// flat buffer as the backward pass produces them: the first one of a step overwrites what is
/// there, later ones (micro-batches, layers used twice) add. So nothing has to be set to zero, and
/// autograd never adds to a gradient.
class FlatSpace {
 public:
  /// Called in the backward pass when the gradient of parameter `index` is complete.
  using GradientReady = std::function<void(std::size_t index)>;

  /// Makes the tensors of `model` views of `memory`, with the values that are there: see
  /// copy_values(). The model must outlive this, and must not be used once the memory is gone.
  FlatSpace(Model& model, const FlatMemory& memory, Tables tables = Tables::among_parameters);
  ~FlatSpace();
  FlatSpace(const FlatSpace&) = delete;
  FlatSpace& operator=(const FlatSpace&) = delete;

  const ModelLayout& layout() const;
  const FlatMemory& memory() const;

  void on_gradient_ready(GradientReady callback);

  /// Where the gradient of parameter `index` goes; its mark is that of `parameter(index)`.
  GradientSink& sink(std::size_t index);
  const torch::Tensor& parameter(std::size_t index) const;

  /// Whether gradients that are ready are sent while the backward pass goes on: layers hurry then.
  bool gradients_travel() const { return gradients_travel_; }
  void let_gradients_travel(bool travel) { gradients_travel_ = travel; }

  /// Before the first backward pass of a step.
  void begin_step();
  /// Before the last one (the only one, unless gradients accumulate): now complete means complete.
  void begin_last_backward();
  /// After the last one. Parameters that got no gradient in this step get zeros, and are ready.
  void finish_step();

 private:
  struct Parameter;
  class ReadyHook;

  void gradient_arrived(std::size_t index);
  void report_ready(std::size_t index);

  ModelLayout layout_;
  FlatMemory memory_;
  std::vector<std::unique_ptr<Parameter>> parameters_;
  GradientReady on_ready_;
  bool last_backward_ = false;
  bool gradients_travel_ = false;
};

}  // namespace cohort
