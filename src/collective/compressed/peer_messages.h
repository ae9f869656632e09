#pragma once

#include <cohort/error.h>
#include <fmt/format.h>

#include <span>
#include <utility>
#include <vector>

#include "transport/transport.h"

namespace cohort::collective {

/// The messages of one exchange with the other ranks, all under one deadline. When it goes away
/// while messages are under way (something has thrown), it closes the transport: the bytes they
/// were given may be gone soon, and the peers cannot finish without this rank either.
///
/// Use: start all receives, then the sends, wait() for what is needed next, and finish() at the
/// end. The bytes of a message must stay until it was waited for. One thread.
class PeerMessages {
 public:
  PeerMessages(transport::Transport& transport, Deadline deadline)
      : transport_(transport), deadline_(deadline) {}
  ~PeerMessages() {
    if (!finished_) transport_.close();
  }
  PeerMessages(const PeerMessages&) = delete;
  PeerMessages& operator=(const PeerMessages&) = delete;

  void send(int peer, transport::Tag tag, std::span<const std::byte> bytes) {
    sends_.push_back(transport_.isend(peer, tag, bytes));
  }

  /// Starts a receive. The number is what wait() takes.
  std::size_t receive(int peer, transport::Tag tag, std::span<std::byte> bytes) {
    receives_.push_back(transport_.irecv(peer, tag, bytes));
    return receives_.size() - 1;
  }
  void wait(std::size_t received) { transport_.wait(*receives_[received], deadline_); }

  /// The last call: waits for all sends. All receives were waited for before.
  void finish() {
    for (const transport::OperationPtr& send : sends_) transport_.wait(*send, deadline_);
    finished_ = true;
  }

 private:
  transport::Transport& transport_;
  Deadline deadline_;
  std::vector<transport::OperationPtr> sends_;
  std::vector<transport::OperationPtr> receives_;
  bool finished_ = false;
};

/// Runs `decode` on a message of `rank`; what is wrong with the message is said to be about that
/// rank.
template <class Decode>
void decode_from(int rank, Decode&& decode) {
  try {
    std::forward<Decode>(decode)();
  } catch (const Error& error) {
    throw error.with_context(fmt::format("gradients of rank {}", rank)).about_rank(rank);
  }
}

}  // namespace cohort::collective
