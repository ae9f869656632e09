#include "data/batch_loader.h"

#include <sched.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/fail.h"

namespace cohort::data {
namespace {

/// Workers are bound to their cores, so this may be fewer than the machine has.
int cores_of_this_thread() {
  cpu_set_t cores;
  if (::sched_getaffinity(0, sizeof cores, &cores) != 0) return 1;
  return CPU_COUNT(&cores);
}

/// A dataset that may wait for a disk gains from a thread even on one core.
bool wants_thread(const Dataset& dataset, BatchLoader::Preparation preparation) {
  if (preparation != BatchLoader::Preparation::automatic) {
    return preparation == BatchLoader::Preparation::in_background;
  }
  return !dataset.in_memory() || cores_of_this_thread() > 1;
}

/// A program's own dataset may return anything; the loop counts on so many rows.
void check_rows(const Batch& batch, std::size_t expected) {
  for (const torch::Tensor* tensor : {&batch.input, &batch.target}) {
    const char* which = tensor == &batch.input ? "input" : "target";
    if (!tensor->defined() || tensor->dim() == 0) {
      fail(ErrorCode::invalid, "the dataset returned no rows of {} for {} samples", which,
           expected);
    }
    if (tensor->size(0) != static_cast<std::int64_t>(expected)) {
      fail(ErrorCode::invalid, "the dataset returned {} rows of {} for {} samples", tensor->size(0),
           which, expected);
    }
  }
}

}  // namespace

BatchLoader::BatchLoader(std::shared_ptr<const Dataset> dataset, const Options& options,
                         Preparation preparation)
    : dataset_(std::move(dataset)), sequence_(dataset_->size(), options) {
  if (wants_thread(*dataset_, preparation)) {
    thread_ = std::thread([this] { prepare_in_background(); });
  }
}

// The thread may be gathering, waiting for a buffer, or gone after a failure; all three end in
// join().
BatchLoader::~BatchLoader() {
  if (!has_thread()) return;
  stopping_ = true;
  given_back_.fetch_add(1);  // Only so that the thread wakes; it looks at stopping_ first.
  given_back_.notify_one();
  thread_.join();
}

void BatchLoader::seek(const cluster::Claim& claim) {
  if (has_thread()) fail(ErrorCode::invalid, "a loader that works ahead cannot go elsewhere");
  sequence_.seek(claim);
}

// Asking for the next batch gives the last one back: its buffer is the thread's from then on. A
// buffer that has a failure is never given back, so every later call rethrows it.
LoadedBatch BatchLoader::next() {
  Buffer& buffer = buffers_[has_thread() ? taken_ % 2 : 0];
  if (has_thread()) {
    given_back_.store(taken_, std::memory_order_release);
    given_back_.notify_one();
    filled_.wait(taken_, std::memory_order_acquire);
  } else if (!buffer.failure) {
    prepare(buffer);
  }
  if (buffer.failure) std::rethrow_exception(buffer.failure);
  ++taken_;
  return buffer.loaded;
}

void BatchLoader::prepare(Buffer& buffer) {
  try {
    const BatchSequence::Item item = sequence_.next();
    static_cast<BatchPlace&>(buffer.loaded) = item.place;
    if (item.indices.empty()) {
      buffer.loaded.batch = no_rows();
    } else {
      dataset_->gather_into(item.indices, buffer.rows);
      check_rows(buffer.rows, item.indices.size());
      buffer.loaded.batch = buffer.rows;
    }
  } catch (...) {
    buffer.failure = std::current_exception();
  }
}

const Batch& BatchLoader::no_rows() {
  if (!no_rows_.input.defined()) {
    // Not every dataset can gather nothing, so the shape of no rows comes from one row.
    const std::int64_t first = 0;
    const Batch one = dataset_->gather({&first, 1});
    check_rows(one, 1);
    no_rows_ = {one.input.narrow(0, 0, 0), one.target.narrow(0, 0, 0)};
  }
  return no_rows_;
}

// Fills batch after batch, at most two ahead of what was given back; ends with the loader or with
// the first failure, which stays in its buffer.
void BatchLoader::prepare_in_background() {
  for (std::uint32_t number = 0;; ++number) {
    for (;;) {
      const std::uint32_t given_back = given_back_.load(std::memory_order_acquire);
      if (stopping_) return;
      if (number - given_back < 2) break;
      given_back_.wait(given_back, std::memory_order_acquire);
    }
    Buffer& buffer = buffers_[number % 2];
    prepare(buffer);
    filled_.store(number + 1, std::memory_order_release);
    filled_.notify_one();
    if (buffer.failure) return;
  }
}

EvaluationBatches::EvaluationBatches(std::shared_ptr<const Dataset> dataset, std::int64_t chunk,
                                     int rank, int world)
    : dataset_(std::move(dataset)),
      chunk_(chunk),
      part_(worker_slice(dataset_->size(), rank, world)),
      at_(part_.begin) {
  if (chunk < 1) fail(ErrorCode::invalid, "a chunk of {} samples makes no sense", chunk);
}

// The last chunk may be smaller.
std::optional<Batch> EvaluationBatches::next() {
  const std::int64_t rows = std::min(chunk_, part_.end - at_);
  if (rows <= 0) return std::nullopt;
  indices_.resize(static_cast<std::size_t>(rows));
  std::iota(indices_.begin(), indices_.end(), at_);
  dataset_->gather_into(indices_, buffer_);
  at_ += rows;
  return buffer_;
}

}  // namespace cohort::data
