#include "group/wait_watch.h"

#include <algorithm>
#include <utility>

#include "base/fail.h"
#include "base/log.h"

namespace cohort::group {
namespace {

constexpr Duration kLongestPatience = std::chrono::seconds(32);
/// When people are told.
constexpr Duration kLong = std::chrono::seconds(10);

/// The ranks that have not made the call that `own` waits for, or not said so.
std::string late_ranks(const std::vector<std::optional<WaitStatus>>& by_rank, int self,
                       const WaitStatus& own) {
  if (own.peer >= 0) return std::to_string(own.peer);
  std::string late;
  for (int rank = 0; rank < static_cast<int>(by_rank.size()); ++rank) {
    const auto& theirs = by_rank[static_cast<std::size_t>(rank)];
    if (rank == self || (theirs && theirs->collectives >= own.number)) continue;
    late += (late.empty() ? "" : ", ") + std::to_string(rank);
  }
  return late;
}

/// Ranks that are in collectives find out by themselves when these differ, so in a circle there is
/// one that sends or receives.
int rank_to_blame(const std::vector<std::optional<WaitStatus>>& by_rank,
                  const std::vector<int>& stuck) {
  const auto in_message = std::ranges::find_if(stuck, [&](int rank) {
    return by_rank[static_cast<std::size_t>(rank)]->waits_for != WaitStatus::For::collective;
  });
  return in_message == stuck.end() ? stuck.front() : *in_message;
}

}  // namespace

WaitWatch::WaitWatch(Board& board, int rank, Duration patience,
                     std::function<void(const Error&)> on_stuck)
    : board_(board), rank_(rank), on_stuck_(std::move(on_stuck)), patience_(patience) {
  now_.sends.resize(static_cast<std::size_t>(board.world()));
  now_.receives.resize(static_cast<std::size_t>(board.world()));
  if (board.world() == 1) return;
  thread_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
}

WaitWatch::~WaitWatch() = default;

void WaitWatch::count(Call& call) {
  const std::lock_guard lock(mutex_);
  const auto peer = static_cast<std::size_t>(call.peer);
  call.number = call.operation == Operation::send      ? ++now_.sends[peer]
                : call.operation == Operation::receive ? ++now_.receives[peer]
                                                       : ++now_.collectives;
}

WaitWatch::Waiting::Waiting(WaitWatch& watch, const Call& call) : watch_(watch) {
  const std::lock_guard lock(watch_.mutex_);
  ++watch_.now_.waits;
  watch_.now_.waiting = true;
  watch_.now_.call = call;
}

WaitWatch::Waiting::~Waiting() {
  const std::lock_guard lock(watch_.mutex_);
  watch_.now_.waiting = false;
}

WaitStatus WaitWatch::status_of(const Now& now) {
  WaitStatus status{.collectives = now.collectives,
                    .sends = now.sends,
                    .receives = now.receives,
                    .number = now.call.number,
                    .call = describe(now.call)};
  if (now.call.operation == Operation::send) status.waits_for = WaitStatus::For::receive;
  if (now.call.operation == Operation::receive) status.waits_for = WaitStatus::For::send;
  if (status.waits_for != WaitStatus::For::collective) status.peer = now.call.peer;
  return status;
}

void WaitWatch::watch(const std::stop_token& stop) {
  const Duration look = std::min<Duration>(patience_ / 4, std::chrono::milliseconds(250));
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    stopping_.wait_for(lock, stop, look, [] { return false; });
    const Now now = now_;
    lock.unlock();
    look_at(now);
    lock.lock();
  }
}

// Two looks that see the same wait have it last at least as long as they are apart, so a call that
// is over at once never costs more than its locks.
void WaitWatch::look_at(const Now& now) {
  const std::uint64_t number = now.waiting ? now.waits : 0;
  if (number != seen_.number) {
    if (seen_.told) patience_ = std::min(2 * patience_, kLongestPatience);
    seen_ = {.number = number, .since = Clock::now()};
  }
  if (number == 0) return;
  const Duration waited = Clock::now() - seen_.since;
  if (!seen_.told && waited >= patience_) {
    seen_.told = true;
    board_.tell_status(status_of(now));
    look_for_circle();
  }
  if (!seen_.logged && waited >= kLong) {
    seen_.logged = true;
    log_wait(status_of(now));
  }
}

void WaitWatch::look_for_circle() {
  const auto by_rank = board_.statuses();
  const std::vector<int> stuck = stuck_ranks(by_rank);
  if (std::ranges::find(stuck, rank_) == stuck.end()) return;
  std::string words;
  for (const int rank : stuck) {
    words += fmt::format("{}rank {} in {}", words.empty() ? "" : ", ", rank,
                         by_rank[static_cast<std::size_t>(rank)]->call);
  }
  on_stuck_(Error(ErrorCode::invalid, "the ranks of the group wait for each other: " + words)
                .about_rank(rank_to_blame(by_rank, stuck)));
}

void WaitWatch::log_wait(const WaitStatus& own) const {
  log_warn("rank {} has waited long for rank {} in {} (number {})", rank_,
           late_ranks(board_.statuses(), rank_, own), own.call, own.number);
}

}  // namespace cohort::group
