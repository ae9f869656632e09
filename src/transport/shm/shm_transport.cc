#include "transport/shm/shm.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <deque>
#include <utility>

#include "base/fail.h"
#include "transport/shm/peer_link.h"
#include "transport/shm/rings.h"

namespace cohort::transport {
namespace {

std::size_t rounded_ring_bytes(const ShmOptions& options) {
  constexpr std::size_t kSmallest = 64;
  return std::bit_ceil(std::max(options.ring_bytes, kSmallest));
}

/// The user's handle. What is destroyed before it is done is abandoned.
class ShmOperation : public Operation {
 public:
  explicit ShmOperation(std::shared_ptr<Transfer> transfer) : transfer_(std::move(transfer)) {}
  ~ShmOperation() override { transfer_->abandoned = true; }

  const Transfer& transfer() const { return *transfer_; }

 private:
  std::shared_ptr<Transfer> transfer_;
};

/// One rank's end. isend(), irecv(), wait() and progress() move what can be moved for all peers,
/// not only for the one they are about: a peer may be waiting for just that, and nobody else does
/// it.
///
/// How a wait ends: the transfer is done; or its link has failed (the peer closed, its process
/// ended, sizes differ), which is thrown; or the deadline passes, which fails the link too; or
/// another thread closes this transport. A wait spins for a short while, then sleeps at the own
/// bell, and looks every few milliseconds whether the peer's process still runs. While it sleeps it
/// also unblocks senders: a rank that only sleeps would otherwise let a peer's ring stay full.
class ShmTransport : public Transport {
 public:
  ShmTransport(int rank, int size, std::span<std::byte> region, os::PeerWatch watch,
               const ShmOptions& options)
      : rank_(rank),
        size_(size),
        layout_(size, rounded_ring_bytes(options)),
        region_(region.data()),
        watch_(std::move(watch)),
        wait_(os::WaitPolicy::for_ranks(options.ranks_here > 0 ? options.ranks_here : size,
                                        options.cores)) {
    for (int peer = 0; peer < size; ++peer) {
      const RingMemory out = layout_.ring(region_, rank_, peer);
      links_.emplace_back(peer, RingWriter(out), RingReader(layout_.ring(region_, peer, rank_)),
                          out.bytes.size());
    }
  }

  ~ShmTransport() override { ShmTransport::close(); }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  OperationPtr isend(int peer, Tag tag, std::span<const std::byte> bytes) override {
    PeerLink& link = usable_link(peer);
    if (has_closed(peer)) {
      link.set_failure(lost(peer, "it has closed"));
      link.throw_if_failed();
    }
    auto send = std::make_shared<SendTransfer>(SendTransfer{{peer, tag}, bytes});
    link.start_send(send);
    while (link.move_out()) bell_of(peer).notify();
    move_all();
    return std::make_unique<ShmOperation>(std::move(send));
  }

  OperationPtr irecv(int peer, Tag tag, std::span<std::byte> bytes) override {
    PeerLink& link = usable_link(peer);
    auto receive = std::make_shared<ReceiveTransfer>(ReceiveTransfer{{peer, tag}, bytes});
    link.start_receive(receive);
    move_all();
    return std::make_unique<ShmOperation>(std::move(receive));
  }

  void wait(Operation& operation, Deadline deadline) override {
    const Transfer& transfer = static_cast<ShmOperation&>(operation).transfer();
    while (!transfer.done) {
      PeerLink& link = usable_link(transfer.peer);
      const bool moved = wait_for_movement(link, transfer.peer, deadline);
      if (!transfer.done && (!moved || deadline.passed())) link.set_failure(timed_out(transfer));
    }
  }

  bool progress() noexcept override {
    constexpr int kLooks = 64;  // Each moves a chunk of every message.
    if (closed_) return false;
    try {
      for (int look = 0; look < kLooks && move_all(); ++look) {
      }
    } catch (const std::exception&) {
      // No memory to keep a message aside: whoever waits for one will be told.
    }
    return std::ranges::any_of(links_, &PeerLink::is_busy);
  }

  void close() noexcept override {
    if (closed_.exchange(true)) return;
    layout_.state(region_, rank_).closed.store(1, std::memory_order_release);
    for (int peer = 0; peer < size_; ++peer) bell_of(peer).notify();
  }

  Traffic traffic() const override {
    Traffic sum;
    for (const PeerLink& link : links_) sum += link.traffic();
    return sum;
  }

 private:
  PeerLink& usable_link(int peer) {
    if (closed_) {
      fail(ErrorCode::cancelled, "Rank {} has closed its shared-memory transport.", rank_);
    }
    if (peer < 0 || peer >= size_ || peer == rank_) {
      fail(ErrorCode::invalid, "Rank {} cannot exchange messages with rank {} in a group of {}.",
           rank_, peer, size_);
    }
    PeerLink& link = links_[static_cast<std::size_t>(peer)];
    link.throw_if_failed();
    return link;
  }

  /// Moves what can be moved now, between this rank and all others.
  bool move_all() {
    bool moved = false;
    for (int peer = 0; peer < size_; ++peer) {
      if (peer == rank_) continue;
      PeerLink& link = links_[static_cast<std::size_t>(peer)];
      const bool out = link.move_out();
      const bool in = link.move_in();
      if (out || in) bell_of(peer).notify();
      moved = moved || out || in;
    }
    return moved;
  }

  /// True when that made something move.
  bool unblock_senders() {
    bool unblocked = false;
    for (PeerLink& link : links_) unblocked = link.unblock_sender() || unblocked;
    return unblocked && move_all();
  }

  /// Returns when something moved or `peer` failed; false when the deadline passed before.
  bool wait_for_movement(PeerLink& link, int peer, Deadline deadline) {
    const auto moved = [&] {
      if (move_all() || link.failed() || closed_) return true;
      if (!has_closed(peer)) return false;
      give_up_unless_moving(link, lost(peer, "it has closed"));
      return true;
    };
    if (wait_.look_often(moved)) return true;
    const auto moved_or_unblocked = [&] { return moved() || unblock_senders(); };
    return wait_.sleep_until(bell_of(rank_), moved_or_unblocked, deadline, [&] {
      if (watch_.is_dead(peer)) give_up_unless_moving(link, lost(peer, "its process has ended"));
    });
  }

  /// What a peer wrote before it went is still received.
  void give_up_unless_moving(PeerLink& link, const Error& failure) {
    if (!move_all()) link.set_failure(failure);
  }

  bool has_closed(int peer) const {
    return layout_.state(region_, peer).closed.load(std::memory_order_acquire) != 0;
  }

  os::SharedEvent& bell_of(int rank) { return layout_.state(region_, rank).bell; }

  Error lost(int peer, const std::string& reason) const {
    return Error(ErrorCode::peer_lost,
                 fmt::format("Rank {} lost rank {}: {}.", rank_, peer, reason))
        .about_rank(peer);
  }

  Error timed_out(const Transfer& transfer) const {
    return Error(ErrorCode::timeout,
                 fmt::format("Rank {} waited for rank {} (message with tag {}) until its deadline.",
                             rank_, transfer.peer, transfer.tag))
        .about_rank(transfer.peer);
  }

  const int rank_;
  const int size_;
  const RingLayout layout_;
  std::byte* const region_;  // The caller's; outlives this.
  const os::PeerWatch watch_;
  const os::SharedWait wait_;
  std::deque<PeerLink> links_;        // By rank; the own one stays unused.
  std::atomic<bool> closed_ = false;  // The one member that another thread may touch: by close().
};

}  // namespace

std::size_t shm_bytes_needed(int size, const ShmOptions& options) {
  return RingLayout(size, rounded_ring_bytes(options)).total();
}

std::unique_ptr<Transport> make_shm_transport(int rank, int size, std::span<std::byte> region,
                                              os::PeerWatch watch, const ShmOptions& options) {
  if (rank < 0 || rank >= size) {
    fail(ErrorCode::invalid, "There is no rank {} in a group of {}.", rank, size);
  }
  if (region.size() < shm_bytes_needed(size, options)) {
    fail(ErrorCode::invalid, "A group of {} ranks needs {} bytes of shared memory, not {}.", size,
         shm_bytes_needed(size, options), region.size());
  }
  return std::make_unique<ShmTransport>(rank, size, region, std::move(watch), options);
}

}  // namespace cohort::transport
