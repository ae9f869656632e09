#include "group/board.h"

#include <chrono>
#include <thread>
#include <utility>

#include "base/json.h"

namespace cohort::group {
namespace {

// Keys are written once and never go, so what changes is a counter: how many statuses a rank has
// told, whether there is a failure, and how many know it. Adding nothing to a counter reads it without
// waiting.
constexpr const char* kFailure = "failure";
constexpr const char* kFailed = "failed";
constexpr const char* kHeard = "heard";

constexpr auto kBetweenLooks = std::chrono::milliseconds(2);

std::string count_key(int rank) {
  return fmt::format("waits/{}", rank);
}

std::string status_key(int rank, std::int64_t number) {
  return fmt::format("wait/{}/{}", rank, number);
}

/// What is there already comes at once.
Deadline at_once() {
  return Deadline::in_seconds(10);
}

std::string text_of(const Error& error) {
  return nlohmann::json{{"code", static_cast<int>(error.code())},
                        {"rank", error.rank().value_or(-1)},
                        {"what", error.what()}}
      .dump();
}

Error error_from(const std::string& text) {
  const auto json = parse_json(text);
  const auto code = integer_at(json, "code", 0, static_cast<int>(ErrorCode::cancelled));
  const auto rank = integer_at(json, "rank", -1, 1 << 20);
  Error error(static_cast<ErrorCode>(code), excerpt(json.at("what").get<std::string>(), 2000));
  if (rank >= 0) error.about_rank(static_cast<int>(rank));
  return error;
}

}  // namespace

/// A store that is gone, or holds what is no text of a board, tells nothing.
template <class Talk>
void Board::unless_lost(Talk&& talk) noexcept {
  const std::lock_guard lock(mutex_);
  try {
    talk();
  } catch (const Error& error) {
    lost_ = lost_ || error.code() == ErrorCode::peer_lost;
  } catch (const std::exception&) {
  }
}

bool Board::is_lost() {
  const std::lock_guard lock(mutex_);
  return lost_;
}

void Board::tell_failure(const Error& error) noexcept {
  unless_lost([&] {
    store_->set_once(kFailure, text_of(error));
    store_->add(kFailed, 1);
  });
}

std::optional<Error> Board::failure() noexcept {
  std::optional<Error> reason;
  unless_lost([&] {
    if (store_->add(kFailed, 0) == 0) return;
    reason = error_from(store_->get(kFailure, at_once()));
    if (!std::exchange(heard_, true)) store_->add(kHeard, 1);
  });
  return reason;
}

void Board::wait_until_heard(int ranks, Deadline deadline) noexcept {
  bool waits = true;
  while (waits && !deadline.passed()) {
    waits = false;
    unless_lost([&] { waits = store_->add(kHeard, 0) < ranks; });
    if (waits) std::this_thread::sleep_for(kBetweenLooks);
  }
}

void Board::tell_status(const WaitStatus& status) noexcept {
  unless_lost([&] {
    const std::int64_t told = store_->add(count_key(rank_), 0);
    store_->set(status_key(rank_, told + 1), encode(status));
    store_->add(count_key(rank_), 1);
  });
}

std::vector<std::optional<WaitStatus>> Board::statuses() noexcept {
  std::vector<std::optional<WaitStatus>> all(static_cast<std::size_t>(world_));
  unless_lost([&] {
    for (int rank = 0; rank < world_; ++rank) {
      const std::int64_t told = store_->add(count_key(rank), 0);
      if (told == 0) continue;
      all[static_cast<std::size_t>(rank)] =
          status_from(store_->get(status_key(rank, told), at_once()), world_);
    }
  });
  return all;
}

}  // namespace cohort::group
