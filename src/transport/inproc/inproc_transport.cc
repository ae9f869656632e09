#include "transport/inproc/inproc.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "base/fail.h"

namespace cohort::transport {
namespace {

/// How a message travels. Each rank has a *mailbox*, in it a *channel* for every (sender, tag). A
/// send and its receive are two *halves*: whichever starts first waits in the channel, the other
/// one finds it there, copies the bytes and wakes whoever waits. A mailbox is thus touched by all
/// who send to its rank and by the rank itself, always under its mutex.
///
///   isend(peer, tag)  ──▶  mailbox of peer: channel (rank_, tag)  ◀──  irecv(rank_, tag) by peer
///
/// An *eager* send leaves a copy in the channel and is complete for its sender at once.
///
/// A failure is of one peer and stays: every later call that needs that peer throws it again.

/// Up to this size a send keeps a copy of the bytes instead of waiting for the receiver.
constexpr std::size_t kEagerLimit = 16 << 10;

/// One side of a message, from its start until it met the other side. A Half in a queue refers to
/// the bytes of whoever started it; one that is `met` or withdrawn does not.
struct Half {
  std::span<const std::byte> source;  ///< Of a send.
  std::span<std::byte> target;        ///< Of a receive.
  std::vector<std::byte> eager_copy;  ///< What `source` refers to, of an eager send.
  bool eager = false;                 ///< A send that is complete for its sender already.
  bool met = false;
  std::size_t sent_size = 0;  ///< Of a receive that met its send.
};

using HalfPtr = std::shared_ptr<Half>;

/// Messages of one sender and tag that wait for the other side. One of the two is always empty.
struct Channel {
  std::deque<HalfPtr> sends;
  std::deque<HalfPtr> receives;
};

/// All that is on its way to one rank. The mutex guards everything below it, the state of every
/// Half that is or was in a channel, and the copying itself: whoever brings the second half of a
/// message copies it, so nobody can free the bytes meanwhile.
struct Mailbox {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::pair<int, Tag>, Channel> channels;
  std::vector<bool> gone;  ///< By rank: has closed.
};

void meet(Half& send, Half& receive) {
  receive.sent_size = send.source.size();
  if (receive.sent_size == receive.target.size() && receive.sent_size > 0) {
    std::memcpy(receive.target.data(), send.source.data(), receive.sent_size);
  }
  send.met = receive.met = true;
}

/// Shared by all endpoints, the last of which to go ends it.
struct Group {
  explicit Group(int size) : mailboxes(static_cast<std::size_t>(size)) {
    for (Mailbox& mailbox : mailboxes) mailbox.gone.resize(mailboxes.size());
  }

  Mailbox& mailbox(int rank) { return mailboxes[static_cast<std::size_t>(rank)]; }

  std::vector<Mailbox> mailboxes;
};

struct InprocOperation : Operation {
  InprocOperation(bool sending, int other, Tag message_tag, HalfPtr own)
      : is_send(sending), peer(other), tag(message_tag), half(std::move(own)) {}

  bool is_send;
  int peer;
  Tag tag;
  HalfPtr half;
};

class InprocTransport : public Transport {
 public:
  InprocTransport(std::shared_ptr<Group> group, int rank)
      : group_(std::move(group)), rank_(rank), failed_(group_->mailboxes.size()) {}
  ~InprocTransport() override { InprocTransport::close(); }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(group_->mailboxes.size()); }

  OperationPtr isend(int peer, Tag tag, std::span<const std::byte> bytes) override;
  OperationPtr irecv(int peer, Tag tag, std::span<std::byte> bytes) override;
  void wait(Operation& operation, Deadline deadline) override;
  void close() noexcept override;

  Traffic traffic() const override { return traffic_; }

 private:
  void check_usable(int peer) const;
  void finish_receive(const InprocOperation& operation);
  void withdraw(Mailbox& mailbox, const InprocOperation& operation);
  [[noreturn]] void fail_peer(int peer, Error error);
  [[noreturn]] void fail_lost(int peer);
  [[noreturn]] void fail_timeout(const InprocOperation& operation);

  std::shared_ptr<Group> group_;
  const int rank_;
  std::atomic<bool> closed_ = false;
  std::vector<std::optional<Error>> failed_;  ///< By peer: the first error, thrown ever after.
  Traffic traffic_;
};

void InprocTransport::check_usable(int peer) const {
  if (peer < 0 || peer >= size()) {
    fail(ErrorCode::invalid, "rank {} has no peer {}: the group's ranks are 0 to {}", rank_, peer,
         size() - 1);
  }
  if (const auto& error = failed_[static_cast<std::size_t>(peer)]) throw *error;
  if (closed_) {
    throw Error(ErrorCode::peer_lost, fmt::format("rank {} has closed its transport", rank_))
        .about_rank(rank_);
  }
}

OperationPtr InprocTransport::isend(int peer, Tag tag, std::span<const std::byte> bytes) {
  check_usable(peer);
  auto half = std::make_shared<Half>();
  half->source = bytes;

  Mailbox& mailbox = group_->mailbox(peer);
  std::unique_lock lock(mailbox.mutex);
  if (mailbox.gone[static_cast<std::size_t>(peer)]) fail_lost(peer);
  const auto channel = mailbox.channels.try_emplace({rank_, tag}).first;
  auto& [sends, receives] = channel->second;
  if (!receives.empty()) {
    meet(*half, *receives.front());
    receives.pop_front();
    if (receives.empty()) mailbox.channels.erase(channel);
    lock.unlock();
    mailbox.changed.notify_all();
  } else {
    if (bytes.size() <= kEagerLimit) {
      half->eager_copy.assign(bytes.begin(), bytes.end());
      half->source = half->eager_copy;
      half->eager = true;
    }
    sends.push_back(half);
  }
  traffic_.sent += bytes.size();
  return std::make_unique<InprocOperation>(true, peer, tag, std::move(half));
}

OperationPtr InprocTransport::irecv(int peer, Tag tag, std::span<std::byte> bytes) {
  check_usable(peer);
  auto half = std::make_shared<Half>();
  half->target = bytes;

  Mailbox& mailbox = group_->mailbox(rank_);
  std::unique_lock lock(mailbox.mutex);
  const auto channel = mailbox.channels.try_emplace({peer, tag}).first;
  auto& [sends, receives] = channel->second;
  if (!sends.empty()) {
    meet(*sends.front(), *half);
    sends.pop_front();
    if (sends.empty()) mailbox.channels.erase(channel);
    lock.unlock();
    mailbox.changed.notify_all();
  } else {
    receives.push_back(half);
  }
  return std::make_unique<InprocOperation>(false, peer, tag, std::move(half));
}

void InprocTransport::wait(Operation& operation, Deadline deadline) {
  auto& own = static_cast<InprocOperation&>(operation);
  const Half& half = *own.half;
  Mailbox& mailbox = group_->mailbox(own.is_send ? own.peer : rank_);
  std::unique_lock lock(mailbox.mutex);
  const auto peer = static_cast<std::size_t>(own.peer);
  const auto hopeless = [&] { return closed_ || failed_[peer] || mailbox.gone[peer]; };
  mailbox.changed.wait_until(lock, deadline.at(),
                             [&] { return half.met || half.eager || hopeless(); });
  if (half.met && !own.is_send) return finish_receive(own);
  if (half.met || half.eager) return;

  withdraw(mailbox, own);
  check_usable(own.peer);
  if (hopeless()) fail_lost(own.peer);
  fail_timeout(own);
}

/// The sender has counted a message of the wrong size as sent: only the receiver knows.
void InprocTransport::finish_receive(const InprocOperation& operation) {
  const Half& half = *operation.half;
  if (half.sent_size != half.target.size()) {
    fail_peer(
        operation.peer,
        Error(ErrorCode::corrupt,
              fmt::format("rank {} expected {} bytes from rank {} (tag {}) but got {}", rank_,
                          half.target.size(), operation.peer, operation.tag, half.sent_size)));
  }
  traffic_.received += half.sent_size;
}

/// Nobody touches the operation's bytes any more.
void InprocTransport::withdraw(Mailbox& mailbox, const InprocOperation& operation) {
  const auto channel =
      mailbox.channels.find({operation.is_send ? rank_ : operation.peer, operation.tag});
  if (channel == mailbox.channels.end()) return;
  std::erase(channel->second.sends, operation.half);
  std::erase(channel->second.receives, operation.half);
}

void InprocTransport::fail_peer(int peer, Error error) {
  throw failed_[static_cast<std::size_t>(peer)].emplace(std::move(error.about_rank(peer)));
}

void InprocTransport::fail_lost(int peer) {
  fail_peer(peer, Error(ErrorCode::peer_lost,
                        fmt::format("rank {} is gone: it closed its transport", peer)));
}

void InprocTransport::fail_timeout(const InprocOperation& operation) {
  fail_peer(
      operation.peer,
      Error(ErrorCode::timeout,
            fmt::format("rank {} did not {} in time for rank {} (tag {}, {} bytes)", operation.peer,
                        operation.is_send ? "receive" : "send", rank_, operation.tag,
                        operation.is_send ? operation.half->source.size()
                                          : operation.half->target.size())));
}

/// What was sent eagerly stays for its receivers; sends whose bytes go away with their owner do
/// not. What others had sent to this rank is dropped.
void InprocTransport::close() noexcept {
  if (closed_.exchange(true)) return;
  for (Mailbox& mailbox : group_->mailboxes) {
    {
      const std::lock_guard lock(mailbox.mutex);
      mailbox.gone[static_cast<std::size_t>(rank_)] = true;
      for (auto& [key, channel] : mailbox.channels) {
        if (key.first != rank_) continue;
        std::erase_if(channel.sends, [](const HalfPtr& send) { return !send->eager; });
      }
      if (&mailbox == &group_->mailbox(rank_)) mailbox.channels.clear();
    }
    mailbox.changed.notify_all();
  }
}

}  // namespace

std::vector<std::unique_ptr<Transport>> make_inproc_group(int size) {
  if (size < 1) fail(ErrorCode::invalid, "a group needs at least one rank, not {}", size);
  const auto group = std::make_shared<Group>(size);
  std::vector<std::unique_ptr<Transport>> endpoints;
  for (int rank = 0; rank < size; ++rank) {
    endpoints.push_back(std::make_unique<InprocTransport>(group, rank));
  }
  return endpoints;
}

}  // namespace cohort::transport
