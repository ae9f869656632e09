#pragma once

#include <cohort/dataset.h>

#include <array>
#include <atomic>
#include <exception>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "data/sampler.h"

namespace cohort::data {

/// A batch in one of the loader's buffers, and where it stands in the order of samples. Valid until
/// the next call of next().
struct LoadedBatch : BatchPlace {
  Batch batch;  ///< May have no rows.
};

/// A worker's training batches, in the order of BatchSequence and without end. While the model
/// computes on one batch, a background thread gathers the next into the other of two buffers:
///
///   loop      | batch 0 (buffer 0)  | batch 1 (buffer 1)  | batch 2 (buffer 0) |
///   thread    | fills buffer 1      | fills buffer 0      | fills buffer 1     |
///             ^ next() gives the buffer of the batch before back, and takes the one that is filled
///
/// Where there is one core only and the dataset is in memory, a thread could not gain anything:
/// there next() gathers itself. What gather() throws in the background reaches the loop from
/// next(). All calls come from one thread.
class BatchLoader {
 public:
  using Options = BatchOptions;
  /// Who gathers; `automatic` decides as said above.
  enum class Preparation { automatic, in_background, in_next };

  BatchLoader(std::shared_ptr<const Dataset> dataset, const Options& options,
              Preparation preparation = Preparation::automatic);
  /// Waits for a gather() that is under way.
  ~BatchLoader();
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;

  /// The tensors are written over by later calls: they are valid until the next one. Rethrows what
  /// gather() threw, then and ever after.
  LoadedBatch next();

  /// Goes on elsewhere: see BatchSequence::seek. Only where next() gathers itself, because a thread
  /// would already have gathered something else.
  void seek(const cluster::Claim& claim);

  bool has_thread() const { return thread_.joinable(); }

 private:
  struct Buffer {
    Batch rows;                  ///< Written over and over.
    LoadedBatch loaded;          ///< What next() returns; shares the memory of `rows`.
    std::exception_ptr failure;  ///< What there is instead of a batch, for ever.
  };

  void prepare(Buffer& buffer);
  void prepare_in_background();
  const Batch& no_rows();

  // These belong to the thread where there is one.
  std::shared_ptr<const Dataset> dataset_;
  BatchSequence sequence_;
  Batch no_rows_;

  // Batch number n is in buffer n % 2. The thread fills it once batch n-2 is given back, and the
  // two counters hand the buffers to and fro: who has read the other's counter sees all that was
  // written before it. Differences are taken modulo 2^32, so the counters may wrap around.
  // std::atomic::wait spins a little before it sleeps.
  std::array<Buffer, 2> buffers_;
  std::atomic<std::uint32_t> filled_ = 0;      ///< Batches filled. Written by the thread.
  std::atomic<std::uint32_t> given_back_ = 0;  ///< Batches given back. Written by the loop.
  std::atomic<bool> stopping_ = false;
  std::uint32_t taken_ = 0;  ///< Batches that next() has returned.
  std::thread thread_;
};

/// A worker's part of a validation set, in order, in chunks. The workers' parts together are the
/// whole set, each sample once. Gathers when it is asked: between steps there is nothing to overlap
/// with. For one thread at a time.
class EvaluationBatches {
 public:
  /// Throws Error(invalid) for a chunk below 1.
  EvaluationBatches(std::shared_ptr<const Dataset> dataset, std::int64_t chunk, int rank = 0,
                    int world = 1);

  /// Nothing at the end. The tensors are valid until the next call.
  std::optional<Batch> next();

  /// From the first chunk again.
  void restart() { at_ = part_.begin; }

  /// Samples of this worker's part.
  std::int64_t size() const { return part_.size(); }

 private:
  std::shared_ptr<const Dataset> dataset_;
  std::int64_t chunk_;
  Slice part_;
  std::int64_t at_;
  std::vector<std::int64_t> indices_;
  Batch buffer_;
};

}  // namespace cohort::data
