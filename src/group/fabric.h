#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/deadline.h"
#include "group/array.h"
#include "group/call.h"
#include "transport/engine.h"

namespace cohort::group {

/// How the ranks of a group make their collectives: in shared memory where all are on one host
/// (host_fabric.cc), by messages elsewhere (message_fabric.cc). One thread at a time, but for
/// abandon(). All ranks make the same calls, each of which begins with agree() or is all_reduce(),
/// which does so itself.
///
/// Arrays that lie in memory of empty(), in the same place on all ranks, are worked on where they
/// stand. Until abandon() by all ranks, and not by this one alone, the others may write to them.
///
/// Throws Error(peer_lost) or Error(timeout) about a rank that does not come. After any Error the
/// fabric is of no further use, and abandon() is to be called: until then the others do not see that
/// this rank is gone, so it can tell them why first, and messages may still move to and from memory
/// that is not ours.
class Fabric {
 public:
  virtual ~Fabric() = default;

  /// Shows this rank's call to all and returns everybody's, by rank, valid until the next call.
  /// Throws Error(invalid) where they do not belong together (check_agreement). `arrays` are those
  /// that others read in what follows.
  virtual std::span<const Call> agree(const Call& call, std::span<const Array> arrays,
                                      Deadline deadline) = 0;

  /// agree(), then the elements become their reduction over the ranks; a mean where the call says
  /// so.
  virtual void all_reduce(const Call& call, std::span<const Array> arrays, Deadline deadline) = 0;

  /// `out` becomes the reduction of everybody's part for this rank; `given` has one for every rank.
  virtual void reduce_scatter(const Call& call, collective::Elements given,
                              collective::Elements out, Deadline deadline) = 0;

  virtual void broadcast(std::span<const Array> arrays, int root, Deadline deadline) = 0;

  /// Fills taken[r] with what rank r gives, this rank's own included; all ranks know all sizes.
  virtual void all_gather(std::span<const std::byte> given,
                          std::span<const std::span<std::byte>> taken, Deadline deadline) = 0;

  /// Part r of `taken` becomes rank r's part for this rank; all parts have one size.
  virtual void all_to_all(std::span<const std::byte> given, std::span<std::byte> taken,
                          Deadline deadline) = 0;

  /// So much memory that nobody else has, the best there is for arrays of these calls. Each of the
  /// ranks may take `room` bytes for it, which is the same on all; nothing where that is too little.
  virtual std::optional<Memory> empty(std::size_t bytes, std::uint64_t room, Deadline deadline) = 0;

  /// Any thread: this rank takes part no longer. What it waits for ends with an Error, and so does
  /// what others wait for with it.
  virtual void abandon() noexcept = 0;
};

/// All ranks of the engine call it. `cores` are those that the ranks of this host share.
std::unique_ptr<Fabric> make_fabric(std::shared_ptr<transport::Engine> engine, int cores,
                                    Deadline deadline);

std::unique_ptr<Fabric> make_host_fabric(std::shared_ptr<transport::Engine> engine, int cores,
                                         Deadline deadline);
std::unique_ptr<Fabric> make_message_fabric(transport::Engine& engine, Deadline deadline);

}  // namespace cohort::group
