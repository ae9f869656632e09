#include "transport/gloo/gloo.h"

#include <gloo/transport/pair.h>
#include <gloo/transport/unbound_buffer.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "transport/gloo/gloo_connections.h"

namespace cohort::transport {
namespace {

/// Vocabulary. libgloo matches a send with a receive by *slot* and takes the receiver's word for
/// the size: bytes beyond it end the process. So a message is a *letter* of at most 1 KiB
/// that says how large the message is and contains it if it is small, and for large messages a
/// *parcel*, whose slot depends on the size: a receive of another size never meets it. Both travel
/// at once; the receiver reads the letter first.
///
///   send of 100 bytes      letter, slot mix(tag):             [ 100 | the bytes ]
///   send of 5000 bytes     letter, slot mix(tag):             [ 5000 ]
///                          parcel, slot of (tag, 5000):       [ the bytes ]
///
/// A receive of 4000 bytes gets the letter, sees 5000 and throws Error(corrupt); the parcel stays
/// unmet. Slots are mixed, so that hardly any tag has the slot of a parcel or of a guard
/// (gloo_connections.h).
constexpr std::size_t kSmallBytes = 1024;

struct Letter {
  std::uint64_t size;
  std::array<std::byte, kSmallBytes> content;
};

std::size_t letter_bytes(std::size_t message_bytes) {
  return sizeof(std::uint64_t) + (message_bytes <= kSmallBytes ? message_bytes : 0);
}

/// Spreads 64 bits over 64 bits, one to one.
std::uint64_t mix(std::uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  return bits ^ (bits >> 31);
}

std::uint64_t letter_slot(Tag tag) {
  return mix(tag);
}

std::uint64_t parcel_slot(Tag tag, std::size_t size) {
  return mix(mix(tag) + mix(~size));
}

/// A send or receive: its letter, and its parcel if it has one. Refers to the user's bytes.
class GlooOperation : public Operation {
 public:
  using Buffer = std::unique_ptr<::gloo::transport::UnboundBuffer>;

  GlooOperation(int peer_rank, Tag message_tag, std::size_t message_bytes)
      : peer(peer_rank), tag(message_tag), bytes(message_bytes) {}

  bool is_small() const { return bytes <= kSmallBytes; }

  /// Starts what a send or a receive consists of. The buffers refer to this object, which
  /// therefore cannot be moved.
  void start(::gloo::transport::Context& context, std::byte* data, bool sends) {
    is_send = sends;
    target = data;
    if (is_send) {
      letter.size = bytes;
      if (is_small() && bytes > 0) std::memcpy(letter.content.data(), data, bytes);
    }
    letter_buffer = context.createUnboundBuffer(&letter, sizeof(letter));
    if (!is_small()) parcel_buffer = context.createUnboundBuffer(data, bytes);
    if (is_send) {
      letter_buffer->send(peer, letter_slot(tag), 0, letter_bytes(bytes));
      if (parcel_buffer) parcel_buffer->send(peer, parcel_slot(tag, bytes));
    } else {
      letter_buffer->recv(peer, letter_slot(tag), 0, sizeof(letter));
      if (parcel_buffer) parcel_buffer->recv(peer, parcel_slot(tag, bytes));
    }
  }

  const int peer;
  const Tag tag;
  const std::size_t bytes;
  bool is_send = false;
  bool done = false;
  std::byte* target = nullptr;
  Letter letter{};
  Buffer letter_buffer;
  Buffer parcel_buffer;  // None for a small message.
};

std::chrono::milliseconds gloo_timeout(Deadline deadline) {
  const auto remaining = std::chrono::ceil<std::chrono::milliseconds>(deadline.remaining());
  return std::max(std::chrono::milliseconds(1), remaining);  // Zero would mean no limit.
}

/// One rank's end. libgloo's background thread moves the bytes; the user's thread starts operations
/// and waits. What libgloo throws is translated here, into an Error about the peer, and nowhere
/// else. It is kept and thrown again by every later call that needs that peer; a timeout by every
/// call, since libgloo then closes all connections.
class GlooTransport : public Transport {
 public:
  explicit GlooTransport(std::shared_ptr<::gloo::transport::Context> context)
      : context_(std::move(context)),
        receipts_(*context_),
        alarms_(*context_),
        failures_(static_cast<std::size_t>(context_->size)) {}

  ~GlooTransport() override { GlooTransport::close(); }

  int rank() const override { return context_->rank; }
  int size() const override { return context_->size; }

  OperationPtr isend(int peer, Tag tag, std::span<const std::byte> bytes) override {
    // libgloo has one type of buffer for both directions; a send only reads.
    return start(peer, tag, {const_cast<std::byte*>(bytes.data()), bytes.size()}, true);
  }

  OperationPtr irecv(int peer, Tag tag, std::span<std::byte> bytes) override {
    return start(peer, tag, bytes, false);
  }

  void wait(Operation& operation, Deadline deadline) override {
    auto& transfer = static_cast<GlooOperation&>(operation);
    if (transfer.done) return;
    check_usable(transfer.peer);
    const auto act = [&] {
      transfer.is_send ? wait_send(transfer, deadline) : wait_receive(transfer, deadline);
    };
    translate(transfer, act, deadline);
    transfer.done = true;
  }

  // First the own wait ends, then the peers read what is on its way, then the connections close. A
  // peer that does not answer costs kPatience, not for ever.
  void close() noexcept override {
    constexpr auto kPatience = std::chrono::seconds(2);
    if (closed_.exchange(true)) return;
    awaited_.interrupt();
    receipts_.collect(*context_, Deadline::in(kPatience));
    for (int peer = 0; peer < size(); ++peer) {
      try {
        if (peer != rank()) context_->getPair(peer)->close();
      } catch (const std::exception&) {
        // A pair that has failed before is closed.
      }
    }
  }

  Traffic traffic() const override { return traffic_; }

 private:
  OperationPtr start(int peer, Tag tag, std::span<std::byte> bytes, bool sends) {
    check_usable(peer);
    auto operation = std::make_unique<GlooOperation>(peer, tag, bytes.size());
    translate(*operation, [&] { operation->start(*context_, bytes.data(), sends); });
    return operation;
  }

  void wait_send(GlooOperation& send, Deadline deadline) {
    const auto is_sent = [&](auto& buffer) { return buffer.waitSend(gloo_timeout(deadline)); };
    wait_until(is_sent, *send.letter_buffer, send, deadline);
    if (send.parcel_buffer) wait_until(is_sent, *send.parcel_buffer, send, deadline);
    traffic_.sent += send.bytes;
  }

  void wait_receive(GlooOperation& receive, Deadline deadline) {
    const auto is_there = [&](auto& buffer) { return buffer.waitRecv(gloo_timeout(deadline)); };
    wait_until(is_there, *receive.letter_buffer, receive, deadline);
    if (receive.letter.size != receive.bytes) fail_with(wrong_size(receive));
    if (receive.parcel_buffer) {
      wait_until(is_there, *receive.parcel_buffer, receive, deadline);
    } else if (receive.bytes > 0) {
      std::memcpy(receive.target, receive.letter.content.data(), receive.bytes);
    }
    traffic_.received += receive.bytes;
  }

  /// Calls `is_complete` until it is true; it returns false when the wait was interrupted.
  template <class IsComplete>
  void wait_until(IsComplete&& is_complete, ::gloo::transport::UnboundBuffer& buffer,
                  const GlooOperation& operation, Deadline deadline) {
    const AwaitedBuffer::Scope scope(awaited_, buffer);
    check_open();
    std::exception_ptr alarm;  // Raised after a last look: what has arrived before it counts.
    while (!is_complete(buffer)) {
      check_open();
      if (alarm) std::rethrow_exception(alarm);
      try {
        alarms_.check(operation.peer);
      } catch (...) {
        alarm = std::current_exception();
      }
      if (!alarm && deadline.passed()) fail_with(timed_out(operation));
    }
  }

  /// Runs `action`; what libgloo throws becomes an Error about the operation's peer.
  template <class Action>
  void translate(const GlooOperation& operation, Action&& action,
                 std::optional<Deadline> deadline = std::nullopt) {
    try {
      action();
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      check_open();
      const bool too_late = deadline && deadline->passed();
      fail_with(too_late ? timed_out(operation) : lost(operation, error.what()));
    }
  }

  void check_open() const {
    if (closed_) fail(ErrorCode::cancelled, "Rank {} has closed its Gloo transport.", rank());
  }

  void check_usable(int peer) const {
    check_open();
    if (peer < 0 || peer >= size() || peer == rank()) {
      fail(ErrorCode::invalid, "Rank {} cannot exchange messages with rank {} in a group of {}.",
           rank(), peer, size());
    }
    if (timeout_) throw Error(*timeout_);
    const auto& failure = failures_[static_cast<std::size_t>(peer)];
    if (failure) throw Error(*failure);
  }

  [[noreturn]] void fail_with(const Error& error) {
    if (error.code() == ErrorCode::timeout) timeout_ = error;
    failures_[static_cast<std::size_t>(*error.rank())] = error;
    throw Error(error);
  }

  Error timed_out(const GlooOperation& operation) const {
    return Error(ErrorCode::timeout,
                 fmt::format("Rank {} waited for rank {} (message with tag {}) until its deadline.",
                             rank(), operation.peer, operation.tag))
        .about_rank(operation.peer);
  }

  Error lost(const GlooOperation& operation, const std::string& reason) const {
    return Error(ErrorCode::peer_lost,
                 fmt::format("Rank {} lost rank {}: {}", rank(), operation.peer, reason))
        .about_rank(operation.peer);
  }

  Error wrong_size(const GlooOperation& receive) const {
    return Error(ErrorCode::corrupt,
                 fmt::format("Rank {} sent {} bytes with tag {} where {} bytes were expected.",
                             receive.peer, receive.letter.size, receive.tag, receive.bytes))
        .about_rank(receive.peer);
  }

  std::shared_ptr<::gloo::transport::Context> context_;
  Receipts receipts_;
  PeerAlarms alarms_;
  std::vector<std::optional<Error>> failures_;  // By peer.
  std::optional<Error> timeout_;                // The first one, of whatever peer.
  Traffic traffic_;
  std::atomic<bool> closed_ = false;  // Any thread may set it, by close().
  AwaitedBuffer awaited_;
};

}  // namespace

std::unique_ptr<Transport> make_gloo_transport(int rank, int size, cluster::Store& store,
                                               const GlooOptions& options) {
  if (rank < 0 || rank >= size) {
    fail(ErrorCode::invalid, "There is no rank {} in a group of {}.", rank, size);
  }
  return std::make_unique<GlooTransport>(connect_gloo_mesh(rank, size, store, options));
}

}  // namespace cohort::transport
