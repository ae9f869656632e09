#include "data/batch_sequence.h"

#include <algorithm>

#include "base/fail.h"

namespace cohort {
namespace {

void check(std::int64_t samples, const BatchOptions& options) {
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

BatchSequence::BatchSequence(std::int64_t samples, const BatchOptions& options)
    : order_(samples, options.seed), options_(options) {
  check(samples, options);
  begin_epoch(options.start.epoch);
  at_.offset = options.start.offset;
}

void BatchSequence::begin_epoch(std::int64_t number) {
  at_ = {number, 0};
  epoch_order_ = order_.epoch(number);
}

void BatchSequence::seek(const Claim& claim) {
  const std::int64_t steps = steps_per_epoch(order_.samples(), options_.batch);
  if (claim.step / steps != at_.epoch) begin_epoch(claim.step / steps);
  at_.offset = claim.step % steps * options_.batch;
  options_.rank = claim.part;
  micro_ = 0;
}

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

}  // namespace cohort
