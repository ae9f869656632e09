#include <cohort/distributed_sampler.h>

#include <algorithm>
#include <numeric>

#include "base/fail.h"
#include "data/sampler.h"

namespace cohort {

/// A pass over an epoch: its order, and how far all ranks together are in it.
struct DistributedSampler::State {
  int rank = 0;
  int world = 1;
  std::int64_t samples = 0;
  std::uint64_t seed = 0;
  SamplerOptions options;

  std::int64_t epoch = -1;  ///< Of the pass that goes on; -1 before the first.
  std::int64_t done = 0;    ///< Samples of it that were handed out.
  std::vector<std::int64_t> order = {};
  /// What set_epoch() has asked the next pass to be.
  std::optional<data::Cursor> next_pass = {};

  void begin(const data::Cursor& at) {
    epoch = at.epoch;
    done = at.offset;
    if (options.shuffle) {
      order = data::GlobalOrder(samples, seed).epoch(epoch);
    } else {
      order.resize(static_cast<std::size_t>(samples));
      std::iota(order.begin(), order.end(), 0);
    }
  }

  /// The samples of the next global batch of this size; fewer at the end of the epoch.
  std::vector<std::int64_t> take(std::int64_t batch) {
    std::int64_t count = std::min(batch, samples - done);
    if (count < batch && options.last == LastBatch::drop) count = 0;
    std::vector<std::int64_t> taken(order.begin() + done, order.begin() + done + count);
    done = count == 0 ? samples : done + count;
    // As many more as it takes for all ranks to have equally many.
    if (options.last == LastBatch::fill) {
      for (std::size_t i = 0; taken.size() % static_cast<std::size_t>(world) != 0; ++i) {
        taken.push_back(order[i % order.size()]);
      }
    }
    return taken;
  }
};

DistributedSampler::DistributedSampler(const Group& group, std::int64_t samples, std::uint64_t seed,
                                       const SamplerOptions& options)
    : state_(std::make_shared<State>()) {
  if (samples < 1) fail(ErrorCode::invalid, "a sampler needs a dataset that has samples");
  state_->rank = group.rank();
  state_->world = group.world();
  state_->samples = samples;
  state_->seed = seed;
  state_->options = options;
}

void DistributedSampler::set_epoch(std::int64_t epoch, std::int64_t samples_done) {
  if (epoch < 0 || samples_done < 0 || samples_done > state_->samples) {
    fail(ErrorCode::invalid,
         "set_epoch({}, {}): there are {} samples in an epoch, which count from 0", epoch,
         samples_done, state_->samples);
  }
  state_->next_pass = data::Cursor{.epoch = epoch, .offset = samples_done};
}

std::int64_t DistributedSampler::epoch() const {
  return state_->epoch;
}

std::int64_t DistributedSampler::samples_done() const {
  return state_->done;
}

void DistributedSampler::reset(torch::optional<std::size_t> new_size) {
  if (new_size) {
    if (*new_size == 0) fail(ErrorCode::invalid, "a sampler needs a dataset that has samples");
    state_->samples = static_cast<std::int64_t>(*new_size);
  }
  state_->begin(state_->next_pass.value_or(data::Cursor{.epoch = state_->epoch + 1}));
  state_->next_pass.reset();
}

torch::optional<std::vector<std::size_t>> DistributedSampler::next(std::size_t batch_size) {
  State& state = *state_;
  if (state.epoch < 0) reset();
  const auto batch = static_cast<std::int64_t>(batch_size) * state.world;
  if (batch == 0 || state.done >= state.samples) return torch::nullopt;
  const std::vector<std::int64_t> taken = state.take(batch);
  const data::Slice own =
      data::worker_slice(static_cast<std::int64_t>(taken.size()), state.rank, state.world);
  if (own.size() == 0) return torch::nullopt;
  return std::vector<std::size_t>(taken.begin() + own.begin, taken.begin() + own.end);
}

void DistributedSampler::save(torch::serialize::OutputArchive& archive) const {
  const data::Cursor begun{.epoch = std::max<std::int64_t>(state_->epoch, 0),
                           .offset = state_->done};
  const data::Cursor at = state_->next_pass.value_or(begun);
  archive.write("cursor", torch::tensor({at.epoch, at.offset}, torch::kInt64), /*is_buffer=*/true);
}

void DistributedSampler::load(torch::serialize::InputArchive& archive) {
  torch::Tensor cursor = torch::empty({2}, torch::kInt64);
  archive.read("cursor", cursor, /*is_buffer=*/true);
  if (cursor.numel() != 2 || cursor.scalar_type() != torch::kInt64) {
    fail(ErrorCode::corrupt, "the archive has no place in an epoch for a sampler");
  }
  set_epoch(cursor[0].item<std::int64_t>(), cursor[1].item<std::int64_t>());
}

}  // namespace cohort
