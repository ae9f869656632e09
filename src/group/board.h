#pragma once

#include <cohort/error.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cluster/store.h"
#include "group/wait_graph.h"

namespace cohort::group {

/// Where the ranks of a group tell each other what goes wrong, beside the connections over which it
/// does: why the group ended, and what those wait for who wait long. Any thread; each call is a few
/// requests to the store, which others hardly wait for. Where the store is gone, because its process
/// has died, nothing is told and nothing is heard.
class Board {
 public:
  /// `store` is this board's alone.
  Board(std::unique_ptr<cluster::Store> store, int rank, int world)
      : store_(std::move(store)), rank_(rank), world_(world) {}

  int world() const { return world_; }

  /// The group is over for this reason. The first one that is told counts.
  void tell_failure(const Error& error) noexcept;

  /// Why the group is over; nothing while nobody has told.
  std::optional<Error> failure() noexcept;

  /// Waits until so many ranks, this one among them, have got that from failure().
  void wait_until_heard(int ranks, Deadline deadline) noexcept;

  /// Whether the connection to the store was found closed: who serves it has gone.
  bool is_lost();

  /// This rank waits. Of every rank the last status counts.
  void tell_status(const WaitStatus& status) noexcept;

  /// By rank; none of those that have told none.
  std::vector<std::optional<WaitStatus>> statuses() noexcept;

 private:
  template <class Talk>
  void unless_lost(Talk&& talk) noexcept;

  std::mutex mutex_;
  std::unique_ptr<cluster::Store> store_;
  bool lost_ = false;   // Guarded by mutex_,
  bool heard_ = false;  // as is this: whether this rank has counted itself to those who have.
  const int rank_;
  const int world_;
};

}  // namespace cohort::group
