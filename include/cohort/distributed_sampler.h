#pragma once

#include <cohort/group.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace cohort {

/// What the ranks do with the last samples of an epoch, which cannot be cut into equal batches.
enum class LastBatch {
  fill,  ///< Samples of the epoch's beginning come once more, so that all ranks have equal batches.
  drop,  ///< They are left out.
  keep,  ///< Every sample comes just once: the last batches differ between ranks, and one rank may
         ///< have a batch less than another (DataParallel::wait(rows) and finish()).
};

struct SamplerOptions {
  bool shuffle = true;
  LastBatch last = LastBatch::fill;
};

/// Gives every rank its own samples, for torch::data::make_data_loader. The order of an epoch is a
/// function of (seed, epoch), and the ranks' batches of b samples are consecutive parts of it:
///
///   epoch, in its order   | 7 3 9 0 | 4 1 8 2 | 6 5 |       two ranks, batches of 2
///   rank 0                | 7 3     | 4 1     | 6   |
///   rank 1                |     9 0 |     8 2 |   5 |
///
/// so N ranks with batches of b see what one rank with batches of N x b does. Every pass of a loader
/// is the next epoch, the first is 0, unless set_epoch() says which.
///
/// A copy is the same sampler: the loader has one, the program keeps another, whose set_epoch() it
/// follows.
class DistributedSampler : public torch::data::samplers::Sampler<> {
 public:
  /// `samples`: how many the dataset has. Throws Error(invalid) for a dataset of none.
  DistributedSampler(const Group& group, std::int64_t samples, std::uint64_t seed,
                     const SamplerOptions& options = {});

  /// The next pass of the loader is this epoch, and goes on after its first `samples_done` samples
  /// (of all ranks together: batches x batch x world), so it takes up an epoch in the middle, also
  /// with another number of ranks.
  void set_epoch(std::int64_t epoch, std::int64_t samples_done = 0);

  /// Of the pass that goes on, or of the last one.
  std::int64_t epoch() const;
  /// Samples of that epoch that all ranks together have been handed. A loader with threads of its own
  /// is ahead of the program, which then counts its batches itself.
  std::int64_t samples_done() const;

  /// For the loader.
  void reset(torch::optional<std::size_t> new_size = torch::nullopt) override;
  torch::optional<std::vector<std::size_t>> next(std::size_t batch_size) override;
  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace cohort
