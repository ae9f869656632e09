#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/deadline.h"
#include "cluster/membership.h"
#include "os/shared_wait.h"

namespace cohort::launch {

/// The newest group of workers, in memory that a launcher and its workers share: the launcher
/// writes it, workers wait for it. Zeroed memory is one without a group.
///
/// Older groups are not kept. Nobody misses one that it is in: there is no newer one before all of
/// its workers have left it. Who is not in it waits for the next.
///
/// A reader may come while a group is being written. So the writer counts before and after it, and
/// a reader that has not seen the same even count before and after looks again (a seqlock). A
/// writer that is killed in between leaves the count odd, and readers would look for ever; but the
/// writer is the launcher, with which its workers end.
class ViewRegister {
 public:
  static std::size_t bytes_needed(std::size_t max_workers);
  ViewRegister() = default;
  /// Shows the register in `memory`, which outlives it.
  explicit ViewRegister(std::byte* memory) : memory_(memory) {}

  /// Only one process writes, groups of growing generations, of at most `max_workers`.
  void write(const cluster::View& view) const;

  /// Generation 0: there was none yet.
  cluster::View read() const;

  /// The newest group once its generation is at least `generation`; nothing when the deadline
  /// passes before.
  std::optional<cluster::View> wait_for(std::int64_t generation, Deadline deadline) const;

 private:
  struct Head {
    os::SharedEvent written;
    std::atomic<std::uint64_t> count;  ///< Odd while a group is being written.
    std::atomic<std::int64_t> generation;
    std::atomic<std::int64_t> closing;
    std::atomic<std::int64_t> world;
  };

  Head& head() const { return *reinterpret_cast<Head*>(memory_); }
  std::atomic<std::int32_t>* workers() const {
    return reinterpret_cast<std::atomic<std::int32_t>*>(memory_ + sizeof(Head));
  }
  std::optional<cluster::View> try_read() const;

  std::byte* memory_ = nullptr;
};

}  // namespace cohort::launch
