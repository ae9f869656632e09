#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/deadline.h"
#include "strategy/worker_sums.h"
#include "tensor/flat_space.h"
#include "transport/transport.h"

namespace cohort::strategy {

/// Gradients of weights that travel as factors.
///
/// The gradient of a linear layer's weight [out, in] over a batch is a product: outputs^T * inputs,
/// where *outputs* are the gradients of the layer's outputs and *inputs* what the layer was given,
/// a row for each sample. With b rows on each of W workers, sending the product by a ring costs a
/// worker 2 (W-1)/W · in · out numbers, and sending the factors to all others (W-1) · b · (in +
/// out), which for wide layers and few rows is a small part of it. Every worker then stacks the
/// factors of all, in the order of the ranks, and multiplies them itself: the same sum, and with
/// the same kernels the same bits on all. (Xie et al. 2016, "sufficient factor broadcasting".)
///
/// It costs (W-1) times the multiplications of the own product, so it is for networks that are slow
/// beside the processor; and where factors are a small part of a large product it is faster on any
/// network. Which weights travel so follows from shapes, never from time: the same job gives the
/// same bytes.
///
///   strategy.factors   weights whose factors are …
///   true               at most half of what a ring would send
///   not given          at most a fifth of it, and which have a million elements or more
///   false              none
///
///   backward pass   the layer leaves its factors in the parameter's sink, not multiplied
///   exchange()      1. how many rows each rank has (the last batch of an epoch may be short)
///                   2. outputs and inputs, everyone to everyone, stacked by rank
///   multiply()      the product of the stacked factors becomes the gradient, already summed
///
/// exchange() may run on another thread than multiply(), which comes after it. When exchange()
/// throws the transport is closed; a rank that claims more rows than a batch has is Error(corrupt).
class FactorExchange {
 public:
  struct Options {
    std::vector<bool> parameters;  ///< Which of the space's travel so; see choose().
    std::int64_t samples = 0;      ///< Of a step, of all workers; nobody can have more.
  };

  /// Which parameters travel as factors, by the table above: those with a ProductMark, for
  /// `context.samples` of each worker. None where the workers do not compute with the same kernels,
  /// as their models would drift apart: that is said in the log. All workers call it together.
  static std::vector<bool> choose(const tensor::FlatSpace& space, const StrategyContext& context,
                                  WorkerSums& sums);

  /// Whether so much of a job's gradients travels as factors that no codec makes its steps much
  /// shorter. Known from shapes, before there is a FlatSpace.
  static bool suffice(const StrategyContext& context);

  /// From now on the layers of these parameters leave their factors in the sinks. All three must
  /// outlive this.
  FactorExchange(tensor::FlatSpace& space, transport::Transport& transport, const Options& options);

  /// Sends what this worker has of a parameter and receives what the others have. All call it for
  /// the same parameters in the same order; on one thread at a time, and for each parameter after
  /// the backward pass through its layer. `tag`: of its messages, another one for each parameter;
  /// up to tag + 2 are used.
  void exchange(std::size_t parameter, transport::Tag tag, Deadline deadline);

  /// Writes the gradient, once exchange() has returned.
  void multiply(std::size_t parameter);

 private:
  /// The factors of all workers, the rows of rank 0 first.
  struct Stacked {
    std::int64_t in = 0;
    std::int64_t out = 0;
    std::int64_t rows_per_sample = 0;
    std::vector<std::int64_t> first_row;  ///< By rank, and at the end the number of all rows.
    std::vector<float> outputs;
    std::vector<float> inputs;

    std::span<float> outputs_of(std::size_t rank) { return slice(outputs, rank, out); }
    std::span<float> inputs_of(std::size_t rank) { return slice(inputs, rank, in); }

   private:
    std::span<float> slice(std::vector<float>& all, std::size_t rank, std::int64_t width) const;
  };

  void exchange_rows(std::size_t parameter, transport::Tag tag, Deadline deadline);
  void exchange_factors(std::size_t parameter, transport::Tag tag, Deadline deadline);
  void place_own(std::size_t parameter);

  tensor::FlatSpace& space_;
  transport::Transport& transport_;
  std::int64_t samples_;
  std::vector<std::int64_t> rows_;  // By rank, of the parameter under way.
  std::vector<Stacked> stacked_;    // By parameter.
};

}  // namespace cohort::strategy
