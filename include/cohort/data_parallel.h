#pragma once

#include <cohort/group.h>
#include <cohort/job.h>
#include <cohort/model.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace cohort {

/// A way of one's own to sum gradients over the ranks.
class GradientReducer {
 public:
  virtual ~GradientReducer() = default;

  /// Begins to replace `gradients`, which stay where they are until finish(), by their sum over the
  /// ranks. Called in every step with the same flat tensors in the same order on all ranks: one for
  /// every type of parameters. They are weighted: their sum is the average.
  virtual void add(const torch::Tensor& gradients) = 0;

  /// Returns when all that was added since the last call has its sum, the same bits on all ranks.
  virtual void finish() = 0;
};

struct DataParallelOptions {
  /// What happens to a module's buffers (running means, say) in wait(): they become the mean over the
  /// ranks, or those of rank 0, or every rank keeps its own. Whole numbers (counters) have no mean;
  /// they become rank 0's.
  enum class Buffers { average, broadcast, leave };
  Buffers buffers = Buffers::average;

  /// How gradients of float32 travel, as `[strategy.compression]` of a job; "auto" is not for own
  /// loops. With error feedback a parameter that was used once has a gradient in every step from then on:
  /// what messages have left out of it before.
  CompressionOptions compression = {};

  /// Instead of all-reduces; not together with compression.
  std::shared_ptr<GradientReducer> reducer = {};
};

/// Makes a module's copies on all ranks one model: they begin equal, and wait() replaces every rank's
/// gradients by their average over the ranks. What comes between is the program's own: forward() may
/// have any signature, there may be several modules with a DataParallel each, several backward passes
/// before one wait() (their gradients add up, as always), any optimizer.
///
///   cohort::DataParallel parallel(group, *net);
///   …
///   optimizer.zero_grad();
///   loss.backward();
///   parallel.wait();
///   optimizer.step();
///
/// All ranks make the same calls of wait(). Each takes what stands in the gradients then: so what a
/// backward pass of another loss has left there, and zero_grad() has thrown away, is never sent.
/// A parameter that has a gradient on any rank gets the average on all, ranks without one counting
/// with zeros; one that has none on any keeps none, so no optimizer moves it.
///
/// With ranks of equally many rows, and a loss that is the mean over its rows, N ranks make the steps
/// that one would on their batches joined; wait(rows) does so for any numbers of rows. Batch norm
/// sees the rows of its rank alone.
///
/// What goes wrong on one rank in the middle of a step (a sparse gradient, a rank that dies, a reducer
/// of the program's own that throws) is an Error on all, and the group is over.
///
/// It keeps no hooks, and no copy of the gradients but the one they are summed in: what wait() and
/// finish() leave as a gradient is overwritten by the next. The module must outlive it, and keep its
/// parameters: new ones, and frozen ones that are to be trained from now on, need a new DataParallel.
/// One thread at a time.
class DataParallel {
 public:
  /// All ranks call it, with modules of the same parameters and buffers (names, types, shapes) and the same
  /// options. Throws Error(invalid) on all of them that names the first difference. Frozen parameters become rank 0's
  /// too, and are not touched after that.
  DataParallel(const Group& group, torch::nn::Module& module,
               const DataParallelOptions& options = {});
  /// The same of tensors that are in no module. Names are for errors.
  DataParallel(const Group& group, std::vector<NamedTensor> parameters,
               std::vector<NamedTensor> buffers = {}, const DataParallelOptions& options = {});
  ~DataParallel();
  DataParallel(DataParallel&&) noexcept;
  DataParallel& operator=(DataParallel&&) noexcept;

  /// Returns when the averaged gradients are there. Every rank that still takes part counts alike.
  void wait();

  /// The same, weighted by the rows of this rank's batch, which may be 0: the average of all rows of
  /// all ranks, if the gradients are those of a mean over the rank's rows. All ranks give rows, or
  /// none does.
  void wait(std::int64_t rows);

  /// For a rank that has no more batches while others do: takes part in their calls of wait(), with no
  /// weight, until all ranks have called it. Gradients that it still has are dropped. `step` is what the program does after wait()
  /// (optimizer.step(), a schedule), called after each, so that optimizers stay alike. Without it the
  /// rank's model stands still, and in the end all ranks take parameters and buffers from one that
  /// went furthest; their optimizers' states differ then.
  void finish(const std::function<void()>& step = {});

  /// The same for several modules whose ranks run out of batches together (a GAN's two): takes part in
  /// whichever wait() the others call, and then calls `step(i)`, which does what the program does
  /// after the wait() of modules[i]. Who finishes gives the same list as the others who do.
  static void finish_all(const std::vector<DataParallel*>& modules,
                         const std::function<void(std::size_t module)>& step = {});

  /// Scales the gradients, after wait(), so that their norm, all taken as one vector, is at most
  /// `most`, and returns what it was: as torch::nn::utils::clip_grad_norm_, and the same on all ranks.
  double clip_grad_norm(double most);

  /// While it lives wait() does nothing: gradients of several batches add up on their rank.
  class Pause {
   public:
    ~Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    friend class DataParallel;
    explicit Pause(DataParallel& parallel);
    std::shared_ptr<int> pauses_;
  };
  [[nodiscard]] Pause no_sync();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cohort
