#pragma once

#include <cohort/dataset.h>

#include <array>
#include <atomic>
#include <exception>
#include <memory>
#include <thread>

#include "data/batch_sequence.h"

namespace cohort {

struct LoadedBatch : BatchPlace {
  Batch batch;  ///< May have no rows.
};

/// A worker's batches, in the order of BatchSequence and without end. While the model computes on
/// one batch, a background thread gathers the next into the other of two buffers. Where there is
/// one core only and the dataset is in memory, a thread could not gain anything: there next()
/// gathers itself.
class BatchLoader {
 public:
  using Options = BatchOptions;
  enum class Preparation { automatic, in_background, in_next };

  BatchLoader(std::shared_ptr<const Dataset> dataset, const Options& options,
              Preparation preparation = Preparation::automatic);
  /// Waits for a gather() that is under way.
  ~BatchLoader();
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;

  /// The tensors are written over by later calls: they are valid until the next one. Rethrows what
  /// gather() threw, then and ever after. For one thread at a time.
  LoadedBatch next();

  /// Goes on elsewhere: see BatchSequence::seek. Only where next() gathers itself, because a thread
  /// would already have gathered something else.
  void seek(const Claim& claim);

  bool has_thread() const { return thread_.joinable(); }

 private:
  struct Buffer {
    Batch rows;  ///< Written over and over.
    LoadedBatch loaded;
    std::exception_ptr failure;
  };

  void prepare(Buffer& buffer);
  void prepare_in_background();
  const Batch& no_rows();

  // These belong to the thread where there is one.
  std::shared_ptr<const Dataset> dataset_;
  BatchSequence sequence_;
  Batch no_rows_;

  // Batch number n is in buffer n % 2. The thread fills it once batch n-2 is given back, and the
  // two counters hand the buffers to and fro. std::atomic::wait spins a little before it sleeps.
  std::array<Buffer, 2> buffers_;
  std::atomic<std::uint32_t> filled_ = 0;
  std::atomic<std::uint32_t> given_back_ = 0;
  std::atomic<bool> stopping_ = false;
  std::uint32_t taken_ = 0;
  std::thread thread_;
};

}  // namespace cohort
