#pragma once

#include <cohort/error.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <span>

#include "transport/shm/byte_ring.h"
#include "transport/transport.h"

namespace cohort {

/// A send or receive under way. Whoever started it may abandon it at any time: from then on its
/// bytes must not be touched.
struct Transfer {
  int peer = 0;
  Tag tag = 0;
  bool done = false;
  bool abandoned = false;
};

struct SendTransfer : Transfer {
  std::span<const std::byte> bytes;
};

struct ReceiveTransfer : Transfer {
  std::span<std::byte> bytes;
};

/// Both directions between this rank and one peer: cuts messages into the bytes of one ring and
/// puts those of the other together again. Knows nothing of waiting.
///
/// A message on the ring is a header (tag, size) and the bytes. One whose receive has not been
/// started stays in the ring, which in the end stops the sender; it is kept aside, which costs a
/// copy, only where that is needed to get at a message behind it or to let the sender go on.
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

  std::uint64_t bytes_sent() const { return bytes_sent_; }
  std::uint64_t bytes_received() const { return bytes_received_; }

 private:
  struct Header {
    Tag tag;
    std::uint64_t size;
  };

  /// A message kept aside, perhaps still arriving, perhaps already asked for.
  struct Kept {
    Header header;
    std::unique_ptr<std::byte[]> bytes;
    bool complete = false;
    std::shared_ptr<ReceiveTransfer> receive;
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
  std::size_t receive_some(std::size_t at_most);
  void finish_arriving();
  void deliver(Kept& kept);
  bool sizes_agree(const Header& header, const ReceiveTransfer& receive);

  const int peer_;
  const std::size_t ring_bytes_;
  const std::size_t chunk_;  // Small enough that both sides of a ring copy at the same time.
  RingWriter out_;
  RingReader in_;
  std::deque<std::shared_ptr<SendTransfer>> sends_;
  std::optional<std::size_t> front_sent_;  // Of sends_.front(), once its header is written.
  std::deque<std::shared_ptr<ReceiveTransfer>> receives_;  // Without a message so far.
  std::optional<Arriving> arriving_;
  std::list<Kept> kept_;
  std::optional<Error> failure_;
  std::uint64_t bytes_sent_ = 0;
  std::uint64_t bytes_received_ = 0;
};

}  // namespace cohort
