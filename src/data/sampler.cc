#include "data/sampler.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/fail.h"
#include "base/random.h"

namespace cohort::data {
namespace {

/// Throws for options with which next() would read beyond an epoch's order, or give nothing for
/// ever.
void check_options(std::int64_t samples, const BatchOptions& options) {
  if (samples < 1) fail(ErrorCode::invalid, "the training set is empty");
  if (options.batch < 1) {
    fail(ErrorCode::invalid, "the batch is {}; it must be at least 1", options.batch);
  }
  if (options.accumulate < 1) {
    fail(ErrorCode::invalid, "accumulate is {}; it must be at least 1", options.accumulate);
  }
  if (options.world < 1 || options.rank < 0 || options.rank >= options.world) {
    fail(ErrorCode::invalid, "rank {} is not one of {} workers", options.rank, options.world);
  }
  const Cursor& start = options.start;
  if (start.epoch < 0 || start.offset < 0 || start.offset > samples) {
    fail(ErrorCode::invalid,
         "cannot continue at epoch {}, sample {}: the training set has {} samples", start.epoch,
         start.offset, samples);
  }
}

}  // namespace

// In closed form: every worker computes any worker's slice without knowing the others.
Slice worker_slice(std::int64_t samples, int rank, int world) {
  const std::int64_t base = samples / world;
  const std::int64_t larger = samples % world;  // Ranks below this one have one more.
  const std::int64_t begin = rank * base + std::min<std::int64_t>(rank, larger);
  return {begin, begin + base + (rank < larger ? 1 : 0)};
}

std::int64_t steps_per_epoch(std::int64_t samples, std::int64_t batch) {
  return samples / batch + (samples % batch > 0 ? 1 : 0);
}

Cursor cursor_after(std::int64_t steps, std::int64_t samples, std::int64_t batch) {
  const std::int64_t per_epoch = steps_per_epoch(samples, batch);
  return {.epoch = steps / per_epoch, .offset = steps % per_epoch * batch};
}

// A shuffle (Fisher-Yates) by random numbers of this seed and epoch alone. Every worker makes it
// for itself, and all have the same order without a word between them.
std::vector<std::int64_t> GlobalOrder::epoch(std::int64_t number) const {
  std::vector<std::int64_t> order(static_cast<std::size_t>(samples_));
  std::iota(order.begin(), order.end(), 0);
  Random random(seed_, static_cast<std::uint64_t>(number));
  for (std::size_t left = order.size(); left > 1; --left) {
    std::swap(order[left - 1], order[random.below(left)]);
  }
  return order;
}

// A global batch is cut twice, each time into slices that differ by one row at most: first into
// `accumulate` micro-batches, one after the other in time, then each of these among the workers:
//
//   global batch    [ micro-batch 0        ][ micro-batch 1        ]
//   workers         [ 0    ][ 1    ][ 2    ][ 0    ][ 1    ][ 2    ]
//
// So whatever the number of workers, the rows of a step are the same, and those of a micro-batch
// too.
BatchSequence::BatchSequence(std::int64_t samples, const BatchOptions& options)
    : order_(samples, options.seed), options_(options) {
  check_options(samples, options);
  begin_epoch(options.start.epoch);
  at_.offset = options.start.offset;
}

void BatchSequence::begin_epoch(std::int64_t number) {
  at_ = {number, 0};
  epoch_order_ = order_.epoch(number);
}

// An epoch's order is made anew only where the step is of another epoch. Claims come from another
// process, and a piece that is none would be read from beyond the order.
void BatchSequence::seek(const cluster::Claim& claim) {
  if (claim.step < 0 || claim.part < 0 || claim.part >= options_.world) {
    fail(ErrorCode::corrupt, "there is no part {} of step {} among {}", claim.part, claim.step,
         options_.world);
  }
  const std::int64_t steps = steps_per_epoch(order_.samples(), options_.batch);
  if (claim.step / steps != at_.epoch) begin_epoch(claim.step / steps);
  at_.offset = claim.step % steps * options_.batch;
  options_.rank = claim.part;
  micro_ = 0;
}

// The position moves on only with the last slice of a step: what is handed out before names the
// same position `after`.
BatchSequence::Item BatchSequence::next() {
  if (at_.offset == order_.samples()) begin_epoch(at_.epoch + 1);
  const std::int64_t global_rows = std::min(options_.batch, order_.samples() - at_.offset);
  const Slice micro =
      worker_slice(global_rows, static_cast<int>(micro_), static_cast<int>(options_.accumulate));
  const Slice mine = worker_slice(micro.size(), options_.rank, options_.world);

  Item item;
  item.place.epoch = at_.epoch;
  item.place.global_rows = global_rows;
  item.place.micro_rows = micro.size();
  item.place.first_row = micro.begin + mine.begin;
  item.place.last_of_step = micro_ + 1 == options_.accumulate;
  item.place.after = {at_.epoch, at_.offset + global_rows};
  item.place.last_of_epoch = item.place.after.offset == order_.samples();
  item.indices = std::span(epoch_order_)
                     .subspan(static_cast<std::size_t>(at_.offset + item.place.first_row),
                              static_cast<std::size_t>(mine.size()));

  micro_ = item.place.last_of_step ? 0 : micro_ + 1;
  if (item.place.last_of_step) at_ = item.place.after;
  return item;
}

}  // namespace cohort::data
