#include "collective/compressed/peer_messages.h"

namespace cohort {

PeerMessages::~PeerMessages() {
  if (!finished_) transport_.close();
}

void PeerMessages::send(int peer, Tag tag, std::span<const std::byte> bytes) {
  sends_.push_back(transport_.isend(peer, tag, bytes));
}

std::size_t PeerMessages::receive(int peer, Tag tag, std::span<std::byte> bytes) {
  receives_.push_back(transport_.irecv(peer, tag, bytes));
  return receives_.size() - 1;
}

void PeerMessages::wait(std::size_t received) {
  transport_.wait(*receives_[received], deadline_);
}

void PeerMessages::finish() {
  for (const OperationPtr& send : sends_) transport_.wait(*send, deadline_);
  finished_ = true;
}

}  // namespace cohort
