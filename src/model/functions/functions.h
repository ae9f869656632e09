#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <string>

namespace cohort::model {

/// Cohort's own differentiable operators. Each is here because it was measured to be faster than
/// torch's, or because several workers need it; everything else layers call in torch itself.
///
///   operator            file                     why it is our own
///   apply_linear        linear_function.cc       gradients go straight to the flat buffer
///   apply_embedding     embedding_function.cc    tables of which a worker has only some rows
///   max_pool_2x2        pool_function.cc         one byte per output for the backward pass
///   attend              attention_function.cc    works on the projection where it lies
///   global_batch_norm   batch_norm_function.cc   statistics of all workers' batches
///   drop_elements       dropout_function.cc      the same mask whoever computes a row
///
/// All are functions of their arguments and, where their comment says so, of two things layers look
/// up: the calling thread's StepContext (tensor/step_context.h) and what belongs to a parameter
/// (tensor/tensor_registry.h). Tensors are float32 on the CPU and may have no rows. Calls on
/// different threads do not meet, unless they share a parameter with a GradientSink or TableRows.
/// Do not count on gradients of gradients (create_graph): most of these functions do not make them.

/// input * weight^T + bias over the last dimension of `input` ([rows, in] or [.., in]), and a ReLU
/// on top where asked. `bias` may be undefined. The backward pass writes the gradients of weight
/// and bias straight into their GradientSinks where they have one (or leaves the factors there, if
/// the sink asks for them), and leaves out the input's gradient where nobody needs it.
///
/// Where gradients travel (StepContext::gradients_travel) the parameters' gradients are made before
/// the input's, so that they are on their way while that one is computed.
torch::Tensor apply_linear(const torch::Tensor& input, const torch::Tensor& weight,
                           const torch::Tensor& bias, bool relu = false);

/// The rows of `weight` that `ids` name. Where the weight is a table kept apart (TableRows), its
/// rows are made current first, and the backward pass gives it only their gradients.
torch::Tensor apply_embedding(const torch::Tensor& ids, const torch::Tensor& weight);

/// torch::max_pool2d(images, 2) for [samples, channels, height, width], or the same of
/// relu(images): a maximum does not mind whether negatives are cut before or after it. Keeps one
/// byte per output for the backward pass, where torch keeps the input and eight.
torch::Tensor max_pool_2x2(const torch::Tensor& images, bool relu);

/// Multi-head scaled dot-product attention. `qkv` is [samples, positions, 3 * width]: the queries,
/// keys and values of all heads side by side, as one projection makes them. Returns
/// [samples, positions, width]. With `causal` a position sees itself and those before it.
///
/// Works on the projection in place, a head of a sample at a time, so that nothing is rearranged
/// and a head's scores stay in the cache.
torch::Tensor attend(const torch::Tensor& qkv, std::int64_t heads, bool causal);

/// The parameters and buffers of a batch norm layer, one number per channel each.
struct BatchNormTensors {
  torch::Tensor weight;
  torch::Tensor bias;
  torch::Tensor running_mean;
  torch::Tensor running_var;
};

/// Torch's defaults: how far the running values move to a batch's, and what is added to a variance.
constexpr double kBatchNormMomentum = 0.1;
constexpr double kBatchNormEpsilon = 1e-5;

/// Batch norm in training, of [samples, channels] or [samples, channels, height, width]. Mean and
/// variance are those of the batches of all workers together, by two sums over the workers in the
/// forward and one in the backward pass (StepContext::sum_over_workers), in which a worker without
/// samples takes part too. The running values are updated, by the same numbers on every worker.
/// Throws what the sum throws, as when a worker is lost.
torch::Tensor global_batch_norm(const torch::Tensor& input, const BatchNormTensors& tensors);

/// Which elements a dropout layer drops, as a function of numbers only: whether element e of row r
/// of the global batch is dropped does not depend on who computes that row.
struct DropoutMask {
  std::uint64_t key = 0;       ///< Of seed, step and layer.
  std::int64_t first_row = 0;  ///< The row of the global batch that is row 0 here.
  double p = 0;                ///< The share that is dropped; 0 to below 1.

  /// The mask of the calling thread's step (StepContext) for the layer of that number.
  static DropoutMask of_this_step(const std::string& layer_number, double p);

  /// input / (1 - p), with the dropped elements 0. Rows run along dimension 0.
  torch::Tensor apply_to(const torch::Tensor& input) const;
};

/// DropoutMask::apply_to with its gradient.
torch::Tensor drop_elements(const torch::Tensor& input, const DropoutMask& mask);

}  // namespace cohort::model
