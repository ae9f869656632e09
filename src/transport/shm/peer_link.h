#pragma once

#include <cohort/error.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "transport/shm/rings.h"
#include "transport/transport.h"

namespace cohort::transport {

/// A send or receive under way, shared by the link that moves it and the user's Operation. Whoever
/// started it may abandon it at any time: from then on its bytes must not be touched.
struct Transfer {
  int peer = 0;
  Tag tag = 0;
  bool done = false;       ///< Set by the link, once: all bytes are in the ring, or have arrived.
  bool abandoned = false;  ///< Set by the user's side when its Operation goes.
};

struct SendTransfer : Transfer {
  std::span<const std::byte> bytes;
};

struct ReceiveTransfer : Transfer {
  std::span<std::byte> bytes;
};

/// Both directions between this rank and one peer: cuts messages into the bytes of one ring and
/// puts those of the other together again. Knows nothing of waiting, nor of bells: its owner
/// (ShmTransport) calls move_out() and move_in() while it waits, and wakes the peer when they say
/// that something has moved. One thread at a time.
///
///   sends_ ──▶ out_  ┌─────────┬───────────────┬─────────┬────────   each message is a header
///                    │ tag,size│ bytes …       │ tag,size│ bytes …   and its bytes
///                    └─────────┴───────────────┴─────────┴────────
///   in_ ──▶ arriving_ ──▶ the receive of the same tag that was started first
///                    └──▶ kept_: kept aside, with memory of its own, until such a receive starts
///
/// Messages leave in the order they were sent in. A message whose receive has not been started
/// stays in the ring, which in the end stops the sender. It is kept aside, which costs a copy, only
/// where that is needed to get at a message behind it (some other receive is waiting) or to let the
/// sender go on: two ranks that both send a lot before they receive would wait for ever otherwise.
///
/// A message that was given up half sent or half received leaves a ring that nobody can make sense
/// of: that fails the link, as does a message of another size than its receive.
///
/// The peer is believed nothing: a header is copied before it is looked at, a message without a
/// receive takes memory as its bytes come and not as it says, and a ring that is broken (rings.h) or
/// a size that nobody can have is Error(corrupt) about the peer.
class PeerLink {
 public:
  PeerLink(int peer, RingWriter out, RingReader in, std::size_t ring_bytes);

  void start_send(std::shared_ptr<SendTransfer> send);
  void start_receive(std::shared_ptr<ReceiveTransfer> receive);

  /// Moves at most about a chunk of bytes. True if anything has moved.
  bool move_out();
  bool move_in();

  /// Whether something may move that was begun here. A message nobody has asked for may not.
  bool is_busy() const {
    const bool arrives = arriving_ && (arriving_->receive || arriving_->kept != nullptr);
    return !failed() && (!sends_.empty() || !receives_.empty() || arrives);
  }

  /// Keeps a message aside if its sender may be stuck because the ring is full. True if it did.
  bool unblock_sender();

  /// The first failure stays; nothing moves afterwards.
  void set_failure(const Error& failure);
  bool failed() const { return failure_.has_value(); }
  void throw_if_failed() const;

  const Traffic& traffic() const { return traffic_; }

 private:
  struct Header {
    Tag tag;
    std::uint64_t size;
  };

  /// A message kept aside, perhaps still arriving, perhaps already asked for. Its bytes are in
  /// pieces of kPiece bytes (the last may be smaller), each taken when the first byte of it comes.
  struct Kept {
    Header header;
    std::vector<std::unique_ptr<std::byte[]>> pieces = {};
    bool complete = false;
    std::shared_ptr<ReceiveTransfer> receive = nullptr;
  };

  /// The message at the front of the incoming ring. It goes to a receive or is kept aside; while
  /// it has neither it waits.
  struct Arriving {
    Header header;
    std::size_t received = 0;
    std::shared_ptr<ReceiveTransfer> receive;
    Kept* kept = nullptr;
  };

  std::size_t send_front(std::size_t at_most);
  bool read_header();
  bool find_destination();
  void keep_aside();
  std::span<std::byte> place_of_next();
  std::span<std::byte> place_aside();
  std::size_t receive_some(std::size_t at_most);
  void finish_arriving();
  void deliver(Kept& kept);
  bool sizes_agree(const Header& header, const ReceiveTransfer& receive);
  void fail_link(ErrorCode code, const std::string& message);

  const int peer_;
  const std::size_t ring_bytes_;  // Of one direction; both are the same.
  const std::size_t chunk_;       // Small enough that both sides of a ring copy at the same time.
  RingWriter out_;
  RingReader in_;
  std::deque<std::shared_ptr<SendTransfer>> sends_;
  std::optional<std::size_t> front_sent_;  // Of sends_.front(), once its header is written.
  std::deque<std::shared_ptr<ReceiveTransfer>> receives_;  // Without a message so far.
  std::optional<Arriving> arriving_;
  std::list<Kept> kept_;  // In the order of arrival; a list, because arriving_ points into it.
  std::optional<Error> failure_;
  Traffic traffic_;
};

}  // namespace cohort::transport
