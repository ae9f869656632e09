#include "transport/shm/peer_link.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/fail.h"

namespace cohort::transport {
namespace {

// Of a message that is kept aside: large enough that few are needed.
constexpr std::size_t kPiece = std::size_t{1} << 20;
// No process can address more.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 47;

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
  if (out_.is_broken()) {
    fail_link(ErrorCode::corrupt,
              fmt::format("Rank {} says it has read more than was sent to it.", peer_));
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
  if (in_.is_broken()) {
    fail_link(ErrorCode::corrupt,
              fmt::format("Rank {} says it has written more than its ring can hold.", peer_));
  }
  if (moved > 0) in_.publish();
  return moved > 0;
}

bool PeerLink::read_header() {
  Header header{};
  if (in_.available() < sizeof(header)) return false;
  in_.read(std::as_writable_bytes(std::span(&header, 1)));
  if (header.size > kMostBytes) {
    fail_link(ErrorCode::corrupt,
              fmt::format("Rank {} announces a message of {} bytes with tag {}.", peer_,
                          header.size, header.tag));
    return false;
  }
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
  kept_.push_back({.header = arriving_->header});
  arriving_->kept = &kept_.back();
}

/// Where the next bytes of the arriving message go: not all that are missing, where it is kept
/// aside; none where there is no memory for them.
std::span<std::byte> PeerLink::place_of_next() {
  if (arriving_->receive) return arriving_->receive->bytes.subspan(arriving_->received);
  try {
    return place_aside();
  } catch (const std::bad_alloc&) {
    fail_link(ErrorCode::no_space,
              fmt::format("There is no memory left to keep a message of rank {} of {} bytes, of "
                          "which {} have come.",
                          peer_, arriving_->header.size, arriving_->received));
    return {};
  }
}

std::span<std::byte> PeerLink::place_aside() {
  auto& pieces = arriving_->kept->pieces;
  const std::size_t in_piece = arriving_->received % kPiece;
  const std::size_t rest = arriving_->header.size - arriving_->received;
  const std::size_t piece = std::min(kPiece, rest + in_piece);
  if (pieces.size() == arriving_->received / kPiece) {
    pieces.push_back(std::make_unique_for_overwrite<std::byte[]>(piece));
  }
  return std::span(pieces.back().get(), piece).subspan(in_piece);
}

std::size_t PeerLink::receive_some(std::size_t at_most) {
  if (arriving_->receive && arriving_->receive->abandoned) {
    set_failure(Error(ErrorCode::peer_lost,
                      fmt::format("A message of rank {} was given up half received.", peer_)));
    return 0;
  }
  const std::span<std::byte> place = place_of_next();
  const std::size_t count = in_.read(place.first(std::min(place.size(), at_most)));
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
  std::span<std::byte> to = kept.receive->bytes;
  if (kept.receive->abandoned) kept.pieces.clear();
  for (const auto& piece : kept.pieces) {
    const std::size_t count = std::min(kPiece, to.size());
    std::memcpy(to.data(), piece.get(), count);
    to = to.subspan(count);
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
  fail_link(ErrorCode::corrupt,
            fmt::format("Rank {} sent {} bytes with tag {} where {} bytes were expected.", peer_,
                        header.size, header.tag, receive.bytes.size()));
  return false;
}

void PeerLink::fail_link(ErrorCode code, const std::string& message) {
  set_failure(Error(code, message).about_rank(peer_));
}

void PeerLink::set_failure(const Error& failure) {
  if (!failure_) failure_ = failure;
}

void PeerLink::throw_if_failed() const {
  if (failure_) throw Error(*failure_);
}

}  // namespace cohort::transport
