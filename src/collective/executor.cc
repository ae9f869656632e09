#include "collective/executor.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/fail.h"
#include "collective/sum_kernel.h"

namespace cohort {
namespace {

/// A message is cut into *chunks* of this many floats, so that one chunk can arrive while the one
/// before it, still in the cache, is being summed. Both sides cut alike. A chunk costs a network
/// some wakeups and system calls whatever its size, so it is not smaller than it must be.
constexpr std::size_t kChunk = 256 << 10;

/// Chunks that are received and summed take turns in this many places.
constexpr std::size_t kPlaces = 2;

/// An empty segment is one empty message.
std::size_t chunks_of(Segment segment) {
  return std::max<std::size_t>(1, (segment.size() + kChunk - 1) / kChunk);
}

Segment chunk_of(Segment segment, std::size_t index) {
  const std::size_t begin = segment.begin + index * kChunk;
  return {begin, std::min(begin + kChunk, segment.end)};
}

std::string describe(const Action& action) {
  return fmt::format(
      "{} {} floats {} rank {}", action.kind == ActionKind::send ? "sending" : "receiving",
      action.segment.size(), action.kind == ActionKind::send ? "to" : "from", action.peer);
}

void check_fits(const Schedule& schedule, std::size_t count) {
  for (const Step& step : schedule.steps) {
    for (const Action& action : step.actions) {
      if (action.segment.end <= count) continue;
      fail(ErrorCode::invalid, "{} works on {} floats or more, but its buffer has only {}",
           schedule.name, action.segment.end, count);
    }
  }
}

/// What all actions of a run have in common.
struct Call {
  std::span<float> buffer;
  Tag tag;
  Deadline deadline;

  std::span<float> floats(Segment segment) const {
    return buffer.subspan(segment.begin, segment.size());
  }
};

}  // namespace

class Executor::StepRunner {
 public:
  explicit StepRunner(Transport& transport) : transport_(transport) {}

  void run(const Step& step, const Call& call);

  /// The action that is under way, or failed.
  const Action* current() const { return current_; }

  /// Forgets what was under way; the transport is closed.
  void abandon();

 private:
  struct Started {
    const Action* action;
    OperationPtr operation;
  };

  /// A cache line, so that sums run on aligned memory.
  struct alignas(64) Line {
    float floats[16];
  };

  void prepare_reductions(const Step& step);
  void start_message(const Action& action, const Call& call);
  void reduce(const Call& call);
  void start_chunk_of_reductions(std::size_t chunk, const Call& call);
  void sum_chunk(std::size_t chunk, const Call& call);
  void wait(Started& started, Deadline deadline);

  std::size_t place_index(std::size_t chunk, std::size_t reduction) const {
    return chunk % kPlaces * reductions_.size() + reduction;
  }
  std::span<float> place(std::size_t chunk, std::size_t reduction, std::size_t size) {
    return {scratch_[place_index(chunk, reduction) * lines_per_place_].floats, size};
  }

  Transport& transport_;
  const Action* current_ = nullptr;
  std::vector<Started> messages_;          ///< Sends and copies of the step.
  std::vector<const Action*> reductions_;  ///< Of the step, by ascending peer.
  std::vector<Started> reduction_chunks_;  ///< By place_index.
  std::vector<Line> scratch_;              ///< By place_index, lines_per_place_ each.
  std::size_t lines_per_place_ = 0;
  std::vector<const float*> sources_;  ///< Of one sum.
};

/// Receives are started before sends, so that peers find them waiting.
void Executor::StepRunner::run(const Step& step, const Call& call) {
  prepare_reductions(step);
  if (!reductions_.empty()) start_chunk_of_reductions(0, call);
  for (const Action& action : step.actions) {
    if (action.kind == ActionKind::receive_copy) start_message(action, call);
  }
  for (const Action& action : step.actions) {
    if (action.kind == ActionKind::send) start_message(action, call);
  }
  if (!reductions_.empty()) reduce(call);
  for (Started& message : messages_) wait(message, call.deadline);
  messages_.clear();
}

void Executor::StepRunner::abandon() {
  messages_.clear();
  reduction_chunks_.clear();
}

void Executor::StepRunner::prepare_reductions(const Step& step) {
  reductions_.clear();
  for (const Action& action : step.actions) {
    if (action.kind == ActionKind::receive_reduce) reductions_.push_back(&action);
  }
  if (reductions_.empty()) return;
  const std::size_t largest = chunk_of(reductions_.front()->segment, 0).size();
  const std::size_t floats_per_line = std::size(Line{}.floats);
  const std::size_t places = kPlaces * reductions_.size();
  lines_per_place_ = (largest + floats_per_line - 1) / floats_per_line;
  if (scratch_.size() < places * lines_per_place_) scratch_.resize(places * lines_per_place_);
  reduction_chunks_.resize(places);
}

void Executor::StepRunner::start_message(const Action& action, const Call& call) {
  current_ = &action;
  for (std::size_t chunk = 0; chunk < chunks_of(action.segment); ++chunk) {
    const std::span<float> floats = call.floats(chunk_of(action.segment, chunk));
    messages_.push_back(
        {&action, action.kind == ActionKind::send
                      ? transport_.isend(action.peer, call.tag, std::as_bytes(floats))
                      : transport_.irecv(action.peer, call.tag, std::as_writable_bytes(floats))});
  }
}

void Executor::StepRunner::reduce(const Call& call) {
  const std::size_t chunks = chunks_of(reductions_.front()->segment);
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    if (chunk + 1 < chunks) start_chunk_of_reductions(chunk + 1, call);
    sum_chunk(chunk, call);
  }
}

void Executor::StepRunner::start_chunk_of_reductions(std::size_t chunk, const Call& call) {
  for (std::size_t i = 0; i < reductions_.size(); ++i) {
    const Action& action = *reductions_[i];
    current_ = &action;
    const std::span<float> floats = place(chunk, i, chunk_of(action.segment, chunk).size());
    reduction_chunks_[place_index(chunk, i)] = {
        &action, transport_.irecv(action.peer, call.tag, std::as_writable_bytes(floats))};
  }
}

void Executor::StepRunner::sum_chunk(std::size_t chunk, const Call& call) {
  const std::span<float> own = call.floats(chunk_of(reductions_.front()->segment, chunk));
  sources_.clear();
  for (std::size_t i = 0; i < reductions_.size(); ++i) {
    wait(reduction_chunks_[place_index(chunk, i)], call.deadline);
    sources_.push_back(place(chunk, i, own.size()).data());
  }
  const auto lower_ranks =
      std::count_if(reductions_.begin(), reductions_.end(),
                    [&](const Action* action) { return action->peer < transport_.rank(); });
  sources_.insert(sources_.begin() + lower_ranks, own.data());
  sum_of(own, sources_);
}

void Executor::StepRunner::wait(Started& started, Deadline deadline) {
  current_ = started.action;
  transport_.wait(*started.operation, deadline);
}

Executor::Executor(Transport& transport)
    : transport_(transport), step_runner_(std::make_unique<StepRunner>(transport)) {}

Executor::~Executor() = default;

void Executor::run(const Schedule& schedule, std::span<float> buffer, Tag tag, Deadline deadline) {
  check_fits(schedule, buffer.size());
  const Call call{buffer, tag, deadline};
  for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
    try {
      step_runner_->run(schedule.steps[i], call);
    } catch (const Error& error) {
      transport_.close();
      step_runner_->abandon();
      throw error.with_context(fmt::format("{}, step {} of {}, {}", schedule.name, i + 1,
                                           schedule.steps.size(),
                                           describe(*step_runner_->current())));
    }
  }
}

}  // namespace cohort
