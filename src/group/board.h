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
/// requests to the store, which others never wait for. Where the store is gone, because its process
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

  /// This rank waits. Of every rank the last status counts.
  void tell_status(const WaitStatus& status) noexcept;

  /// By rank; none of those that have told none.
  std::vector<std::optional<WaitStatus>> statuses() noexcept;

 private:
  std::mutex mutex_;
  std::unique_ptr<cluster::Store> store_;
  const int rank_;
  const int world_;
};

}  // namespace cohort::group
