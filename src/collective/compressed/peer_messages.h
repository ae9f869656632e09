#pragma once

#include <span>
#include <vector>

#include "transport/transport.h"

namespace cohort {

/// The messages of one exchange with the other ranks, all under one deadline. When it goes away
/// while messages are under way (something has thrown), it closes the transport: the bytes they
/// were given may be gone soon, and the peers cannot finish without this rank either.
class PeerMessages {
 public:
  PeerMessages(Transport& transport, Deadline deadline)
      : transport_(transport), deadline_(deadline) {}
  ~PeerMessages();
  PeerMessages(const PeerMessages&) = delete;
  PeerMessages& operator=(const PeerMessages&) = delete;

  void send(int peer, Tag tag, std::span<const std::byte> bytes);

  /// Starts a receive. The number is what wait() takes.
  std::size_t receive(int peer, Tag tag, std::span<std::byte> bytes);
  void wait(std::size_t received);

  /// The last call: waits for all sends.
  void finish();

 private:
  Transport& transport_;
  Deadline deadline_;
  std::vector<OperationPtr> sends_;
  std::vector<OperationPtr> receives_;
  bool finished_ = false;
};

}  // namespace cohort
