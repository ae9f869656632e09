#include "collective/executor.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/fail.h"

namespace cohort::collective {
namespace {

// How a step is run. All messages of the step are under way at once, and what is received to be
// summed is received chunk by chunk into two *places* for each peer: while chunk k is being added
// up, chunk k + 1 arrives in the other place.
//
//   start receives of chunk 0 to be summed ─▶ start receives to be copied ─▶ start sends
//   for each chunk k:  start receives of chunk k + 1 ─▶ wait for chunk k of all ─▶ sum it
//   wait for all copies and sends

/// A message is cut into *chunks* of this many bytes, so that one chunk can arrive while the one
/// before it, still in the cache, is being summed. Both sides cut alike. A chunk costs a network
/// some wakeups and system calls whatever its size, so it is not smaller than it must be.
constexpr std::size_t kChunkBytes = 1 << 20;

/// Chunks that are received and summed take turns in this many places.
constexpr std::size_t kPlaces = 2;

std::string describe(const Action& action, ElementType type) {
  return fmt::format("{} {} {} {} rank {}",
                     action.kind == ActionKind::send ? "sending" : "receiving",
                     action.segment.size(), plural_of(type),
                     action.kind == ActionKind::send ? "to" : "from", action.peer);
}

void check_fits(const Schedule& schedule, const Elements& buffer) {
  for (const Step& step : schedule.steps) {
    for (const Action& action : step.actions) {
      if (action.segment.end > buffer.size()) {
        fail(ErrorCode::invalid, "{} works on {} {} or more, but its buffer has only {}",
             schedule.name, action.segment.end, plural_of(buffer.type()), buffer.size());
      }
      if (action.kind == ActionKind::receive_reduce && buffer.type() == ElementType::byte) {
        fail(ErrorCode::invalid, "{} makes sums, but of bytes there are none", schedule.name);
      }
    }
  }
}

/// What all actions of a run have in common.
struct Call {
  Elements buffer;
  transport::Tag tag;
  Deadline deadline;
  Reduction how;

  std::span<std::byte> bytes(Segment segment) const {
    return buffer.subspan(segment.begin, segment.size()).bytes();
  }

  /// An empty segment is one empty message.
  std::size_t chunks_of(Segment segment) const {
    return std::max<std::size_t>(1, (segment.size() + chunk_size() - 1) / chunk_size());
  }

  Segment chunk_of(Segment segment, std::size_t index) const {
    const std::size_t begin = segment.begin + index * chunk_size();
    return {begin, std::min(begin + chunk_size(), segment.end)};
  }

 private:
  std::size_t chunk_size() const { return kChunkBytes / size_of(buffer.type()); }
};

}  // namespace

/// Runs one step after the other. Keeps its scratch memory, so that the same schedule run again
/// allocates nothing large.
class Executor::StepRunner {
 public:
  explicit StepRunner(transport::Transport& transport) : transport_(transport) {}

  void run(const Schedule& schedule, const Call& call);

  /// Forgets what was under way; the transport is closed.
  void abandon();

 private:
  struct Started {
    const Action* action;
    transport::OperationPtr operation;
  };

  /// A cache line, so that sums run on aligned memory.
  struct alignas(64) Line {
    std::byte bytes[64];
  };

  void run(const Step& step, const Call& call);
  void prepare_reductions(const Step& step, const Call& call);
  void start_message(const Action& action, const Call& call);
  void reduce(const Call& call);
  void start_chunk_of_reductions(std::size_t chunk, const Call& call);
  void sum_chunk(std::size_t chunk, const Call& call);
  void wait(Started& started, Deadline deadline);

  std::size_t place_index(std::size_t chunk, std::size_t reduction) const {
    return chunk % kPlaces * reductions_.size() + reduction;
  }
  std::span<std::byte> place(std::size_t chunk, std::size_t reduction, std::size_t bytes) {
    return {scratch_[place_index(chunk, reduction) * lines_per_place_].bytes, bytes};
  }

  transport::Transport& transport_;
  const Action* current_ = nullptr;        ///< That is under way, or failed.
  std::vector<Started> messages_;          ///< Sends and copies of the step.
  std::vector<const Action*> reductions_;  ///< Of the step, by ascending peer.
  std::vector<Started> reduction_chunks_;  ///< By place_index.
  std::vector<Line> scratch_;              ///< By place_index, lines_per_place_ each.
  std::size_t lines_per_place_ = 0;
  std::vector<const std::byte*> sources_;  ///< Of one sum.
};

void Executor::StepRunner::run(const Schedule& schedule, const Call& call) {
  for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
    try {
      run(schedule.steps[i], call);
    } catch (const Error& error) {
      throw error.with_context(fmt::format("{}, step {} of {}, {}", schedule.name, i + 1,
                                           schedule.steps.size(),
                                           describe(*current_, call.buffer.type())));
    }
  }
}

/// Receives are started before sends, so that peers find them waiting.
void Executor::StepRunner::run(const Step& step, const Call& call) {
  prepare_reductions(step, call);
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

void Executor::StepRunner::prepare_reductions(const Step& step, const Call& call) {
  reductions_.clear();
  for (const Action& action : step.actions) {
    if (action.kind == ActionKind::receive_reduce) reductions_.push_back(&action);
  }
  if (reductions_.empty()) return;
  const std::size_t largest = call.bytes(call.chunk_of(reductions_.front()->segment, 0)).size();
  const std::size_t places = kPlaces * reductions_.size();
  lines_per_place_ = (largest + sizeof(Line) - 1) / sizeof(Line);
  if (scratch_.size() < places * lines_per_place_) scratch_.resize(places * lines_per_place_);
  reduction_chunks_.resize(places);
}

void Executor::StepRunner::start_message(const Action& action, const Call& call) {
  current_ = &action;
  for (std::size_t chunk = 0; chunk < call.chunks_of(action.segment); ++chunk) {
    const std::span<std::byte> bytes = call.bytes(call.chunk_of(action.segment, chunk));
    messages_.push_back({&action, action.kind == ActionKind::send
                                      ? transport_.isend(action.peer, call.tag, bytes)
                                      : transport_.irecv(action.peer, call.tag, bytes)});
  }
}

void Executor::StepRunner::reduce(const Call& call) {
  const std::size_t chunks = call.chunks_of(reductions_.front()->segment);
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    if (chunk + 1 < chunks) start_chunk_of_reductions(chunk + 1, call);
    sum_chunk(chunk, call);
  }
}

void Executor::StepRunner::start_chunk_of_reductions(std::size_t chunk, const Call& call) {
  for (std::size_t i = 0; i < reductions_.size(); ++i) {
    const Action& action = *reductions_[i];
    current_ = &action;
    const std::size_t size = call.bytes(call.chunk_of(action.segment, chunk)).size();
    reduction_chunks_[place_index(chunk, i)] = {
        &action, transport_.irecv(action.peer, call.tag, place(chunk, i, size))};
  }
}

// The own part stands among the sources where its rank stands, so the sum is made in the order of
// the ranks.
void Executor::StepRunner::sum_chunk(std::size_t chunk, const Call& call) {
  const std::span<std::byte> own = call.bytes(call.chunk_of(reductions_.front()->segment, chunk));
  sources_.clear();
  for (std::size_t i = 0; i < reductions_.size(); ++i) {
    wait(reduction_chunks_[place_index(chunk, i)], call.deadline);
    sources_.push_back(place(chunk, i, own.size()).data());
  }
  const auto lower_ranks =
      std::count_if(reductions_.begin(), reductions_.end(),
                    [&](const Action* action) { return action->peer < transport_.rank(); });
  sources_.insert(sources_.begin() + lower_ranks, own.data());
  reduce_of({call.buffer.type(), call.how}, own, sources_);
}

void Executor::StepRunner::wait(Started& started, Deadline deadline) {
  current_ = started.action;
  transport_.wait(*started.operation, deadline);
}

Executor::Executor(transport::Transport& transport)
    : transport_(transport), step_runner_(std::make_unique<StepRunner>(transport)) {}

Executor::~Executor() = default;

void Executor::run(const Schedule& schedule, Elements buffer, transport::Tag tag, Deadline deadline,
                   Reduction how) {
  check_fits(schedule, buffer);
  try {
    step_runner_->run(schedule, {buffer, tag, deadline, how});
  } catch (const Error&) {
    transport_.close();
    step_runner_->abandon();
    throw;
  }
}

void Executor::run_unclosed(const Schedule& schedule, Elements buffer, transport::Tag tag,
                            Deadline deadline, Reduction how) {
  check_fits(schedule, buffer);
  step_runner_->run(schedule, {buffer, tag, deadline, how});
}

}  // namespace cohort::collective
