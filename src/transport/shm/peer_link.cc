#include "transport/shm/peer_link.h"

#include <algorithm>
#include <cstring>

#include "base/fail.h"

namespace cohort::transport {
namespace {

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

}  // namespace

PeerLink::PeerLink(int peer, RingWriter out, RingReader in, std::size_t ring_bytes)
    : peer_(peer), ring_bytes_(ring_bytes), chunk_(ring_bytes / 8), out_(out), in_(in) {}

void PeerLink::start_send(std::shared_ptr<SendTransfer> send) {
  sends_.push_back(std::move(send));
}

void PeerLink::start_receive(std::shared_ptr<ReceiveTransfer> receive) {
  const auto kept = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& candidate) {
    return candidate.header.tag == receive->tag && !candidate.receive;
  });
  if (kept == kept_.end()) {
    receives_.push_back(std::move(receive));
  } else if (sizes_agree(kept->header, *receive)) {
    kept->receive = std::move(receive);
    if (kept->complete) deliver(*kept);
  }
}

bool PeerLink::move_out() {
  std::size_t moved = 0;
  while (!failed() && !sends_.empty() && moved < chunk_) {
    const std::size_t count = send_front(chunk_ - moved);
    if (count == 0) break;
    moved += count;
  }
  if (moved > 0) out_.publish();
  return moved > 0;
}

/// Bytes moved, the header's included; 0 where the ring has no room. An abandoned send of which
/// nothing was written yet is dropped, and counts as moved, so that the next one gets its turn.
std::size_t PeerLink::send_front(std::size_t at_most) {
  SendTransfer& send = *sends_.front();
  if (send.abandoned && front_sent_) {
    set_failure(Error(ErrorCode::peer_lost,
                      fmt::format("A message to rank {} was given up half sent.", peer_)));
    return 0;
  }
  std::size_t moved = 0;
  if (!send.abandoned) {
    if (!front_sent_) {
      const Header header{send.tag, send.bytes.size()};
      if (out_.room() < sizeof(header)) return 0;
      moved = out_.write(bytes_of(header));
      front_sent_ = 0;
    }
    const auto rest = send.bytes.subspan(*front_sent_);
    const std::size_t count = out_.write(rest.first(std::min(rest.size(), at_most)));
    *front_sent_ += count;
    traffic_.sent += count;
    moved += count;
    if (*front_sent_ < send.bytes.size()) return moved;
    send.done = true;
  }
  front_sent_.reset();
  sends_.pop_front();
  return std::max<std::size_t>(moved, 1);
}

bool PeerLink::move_in() {
  std::size_t moved = 0;
  while (!failed() && moved < chunk_) {
    if (!arriving_) {
      if (!read_header()) break;
      moved += sizeof(Header);
    }
    if (!find_destination()) break;
    const bool complete = arriving_->received == arriving_->header.size;
    const std::size_t count = complete ? 0 : receive_some(chunk_ - std::min(chunk_, moved));
    moved += count;
    if (failed()) break;
    if (arriving_->received == arriving_->header.size) {
      finish_arriving();
    } else if (count == 0) {
      break;
    }
  }
  if (moved > 0) in_.publish();
  return moved > 0;
}

bool PeerLink::read_header() {
  Header header{};
  if (in_.available() < sizeof(header)) return false;
  in_.read(std::as_writable_bytes(std::span(&header, 1)));
  arriving_ = Arriving{.header = header, .receive = nullptr};
  return true;
}

/// True when the arriving message has a place to go to. While no receive waits at all, it stays in
/// the ring: the one that starts next may well be its own, and then no copy is needed.
bool PeerLink::find_destination() {
  if (arriving_->receive || arriving_->kept) return true;
  std::erase_if(receives_, [](const auto& receive) { return receive->abandoned; });
  if (receives_.empty()) return false;
  const auto match = std::find_if(receives_.begin(), receives_.end(), [&](const auto& receive) {
    return receive->tag == arriving_->header.tag;
  });
  if (match == receives_.end()) {
    keep_aside();  // What is waited for comes behind it.
    return true;
  }
  if (!sizes_agree(arriving_->header, **match)) return false;
  arriving_->receive = *match;
  receives_.erase(match);
  return true;
}

void PeerLink::keep_aside() {
  auto bytes = std::make_unique_for_overwrite<std::byte[]>(arriving_->header.size);
  kept_.push_back({arriving_->header, std::move(bytes), false, nullptr});
  arriving_->kept = &kept_.back();
}

std::size_t PeerLink::receive_some(std::size_t at_most) {
  if (arriving_->receive && arriving_->receive->abandoned) {
    set_failure(Error(ErrorCode::peer_lost,
                      fmt::format("A message of rank {} was given up half received.", peer_)));
    return 0;
  }
  std::byte* data =
      arriving_->receive ? arriving_->receive->bytes.data() : arriving_->kept->bytes.get();
  const std::size_t rest = arriving_->header.size - arriving_->received;
  const std::size_t count =
      in_.read(std::span(data + arriving_->received, std::min(rest, at_most)));
  arriving_->received += count;
  traffic_.received += count;
  return count;
}

void PeerLink::finish_arriving() {
  if (arriving_->receive) {
    arriving_->receive->done = true;
  } else {
    arriving_->kept->complete = true;
    if (arriving_->kept->receive) deliver(*arriving_->kept);
  }
  arriving_.reset();
}

/// Ends the life of `kept`. A receive that was abandoned meanwhile gets nothing, and the message is
/// gone all the same.
void PeerLink::deliver(Kept& kept) {
  if (!kept.receive->abandoned && kept.header.size > 0) {
    std::memcpy(kept.receive->bytes.data(), kept.bytes.get(), kept.header.size);
  }
  kept.receive->done = true;
  kept_.remove_if([&](const Kept& candidate) { return &candidate == &kept; });
}

bool PeerLink::unblock_sender() {
  const bool waits = arriving_ && !arriving_->receive && !arriving_->kept;
  // A sender that lacks room only for a header is as stuck as one in front of a full ring.
  if (failed() || !waits || in_.available() + sizeof(Header) <= ring_bytes_) return false;
  keep_aside();
  return true;
}

bool PeerLink::sizes_agree(const Header& header, const ReceiveTransfer& receive) {
  if (header.size == receive.bytes.size()) return true;
  Error error(ErrorCode::corrupt,
              fmt::format("Rank {} sent {} bytes with tag {} where {} bytes were expected.", peer_,
                          header.size, header.tag, receive.bytes.size()));
  set_failure(error.about_rank(peer_));
  return false;
}

void PeerLink::set_failure(const Error& failure) {
  if (!failure_) failure_ = failure;
}

void PeerLink::throw_if_failed() const {
  if (failure_) throw Error(*failure_);
}

}  // namespace cohort::transport
