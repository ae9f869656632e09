#include <algorithm>
#include <cstring>

#include "collective/algorithms.h"
#include "collective/executor.h"
#include "group/fabric.h"

namespace cohort::group {
namespace {

constexpr transport::Tag kCalls = 1;
constexpr transport::Tag kContent = 2;

/// Everything by messages of one transport: calls are compared by sending each to every other rank,
/// sums and broadcasts are schedules (collective/algorithms.h), and what has a part for every rank
/// is sent to it as it stands.
class MessageFabric : public Fabric {
 public:
  MessageFabric(std::unique_ptr<transport::Transport> transport, std::vector<int> hosts)
      : transport_(std::move(transport)),
        executor_(*transport_),
        hosts_(std::move(hosts)),
        calls_(hosts_.size()) {}
  ~MessageFabric() override { transport_->close(); }  // Before what is under way is forgotten.

  std::span<const Call> agree(const Call& call, std::span<const Array>,
                              Deadline deadline) override {
    std::vector<std::span<std::byte>> from;
    for (Call& each : calls_) from.push_back(std::as_writable_bytes(std::span(&each, 1)));
    const std::vector<std::span<const std::byte>> to(calls_.size(),
                                                     std::as_bytes(std::span(&call, 1)));
    exchange(to, from, kCalls, deadline);
    for (int rank = 0; rank < world(); ++rank) {
      calls_[static_cast<std::size_t>(rank)] = call_in(from[static_cast<std::size_t>(rank)], rank);
    }
    check_agreement(calls_);
    return calls_;
  }

  // bfloat16 is summed in one place, in float: passed on from rank to rank it would be rounded at
  // each of them.
  void all_reduce(const Call& call, std::span<const Array> arrays, Deadline deadline) override {
    agree(call, {}, deadline);
    if (world() == 1) return;
    const char* const algorithm = call.type == collective::ElementType::bf16 ? "direct" : "auto";
    as_one(arrays, packed_, [&](collective::Elements elements) {
      executor_.run_unclosed(
          collective::all_reduce_schedule(algorithm, transport_->rank(), hosts_, elements.size()),
          elements, kContent, deadline, call.how);
      if (call.mean != 0) collective::divide(elements, world());
    });
  }

  void reduce_scatter(const Call& call, collective::Elements given, collective::Elements out,
                      Deadline deadline) override {
    const std::size_t size = out.bytes().size();
    scratch_.resize(size * calls_.size());
    std::vector<std::span<const std::byte>> to;
    std::vector<std::span<std::byte>> from;
    std::vector<const std::byte*> sources;
    for (std::size_t rank = 0; rank < calls_.size(); ++rank) {
      to.push_back(given.bytes().subspan(rank * size, size));
      from.push_back(std::span(scratch_).subspan(rank * size, size));
      sources.push_back(from.back().data());
    }
    exchange(to, from, kContent, deadline);
    if (out.empty()) return;
    collective::reduce_of({out.type(), call.how}, out.bytes(), sources);
    if (call.mean != 0) collective::divide(out, world());
  }

  void broadcast(std::span<const Array> arrays, int root, Deadline deadline) override {
    if (world() == 1) return;
    as_one(arrays, packed_, [&](collective::Elements elements) {
      const std::span<std::byte> bytes = elements.bytes();
      executor_.run_unclosed(
          collective::tree_broadcast(transport_->rank(), world(), bytes.size(), root), bytes,
          kContent, deadline);
    });
  }

  void all_gather(std::span<const std::byte> given, std::span<const std::span<std::byte>> taken,
                  Deadline deadline) override {
    const std::vector<std::span<const std::byte>> to(calls_.size(), given);
    exchange(to, taken, kContent, deadline);
  }

  void all_to_all(std::span<const std::byte> given, std::span<std::byte> taken,
                  Deadline deadline) override {
    const std::size_t size = taken.size() / calls_.size();
    std::vector<std::span<const std::byte>> to;
    std::vector<std::span<std::byte>> from;
    for (std::size_t rank = 0; rank < calls_.size(); ++rank) {
      to.push_back(given.subspan(rank * size, size));
      from.push_back(taken.subspan(rank * size, size));
    }
    exchange(to, from, kContent, deadline);
  }

  std::optional<Memory> empty(std::size_t bytes, std::uint64_t room, Deadline) override {
    if (bytes > room) return std::nullopt;
    return plain_memory(bytes);
  }

  void abandon() noexcept override { transport_->close(); }

 private:
  int world() const { return static_cast<int>(calls_.size()); }

  /// Sends to[r] to rank r and fills from[r] with what that one sends here. Empty ones are left out,
  /// which both ends know. What is for this rank itself is copied.
  void exchange(std::span<const std::span<const std::byte>> to,
                std::span<const std::span<std::byte>> from, transport::Tag tag, Deadline deadline) {
    const auto self = static_cast<std::size_t>(transport_->rank());
    for (int peer = 0; peer < world(); ++peer) {
      const auto& bytes = from[static_cast<std::size_t>(peer)];
      if (peer == transport_->rank() || bytes.empty()) continue;
      started_.push_back(transport_->irecv(peer, tag, bytes));
    }
    for (int peer = 0; peer < world(); ++peer) {
      const auto& bytes = to[static_cast<std::size_t>(peer)];
      if (peer == transport_->rank() || bytes.empty()) continue;
      started_.push_back(transport_->isend(peer, tag, bytes));
    }
    if (!to[self].empty() && to[self].data() != from[self].data()) {
      std::memcpy(from[self].data(), to[self].data(), to[self].size());
    }
    for (const auto& operation : started_) transport_->wait(*operation, deadline);
    started_.clear();
  }

  std::unique_ptr<transport::Transport> transport_;
  collective::Executor executor_;
  std::vector<int> hosts_;
  std::vector<Call> calls_;
  std::vector<transport::OperationPtr> started_;  // Of the exchange that goes on, or has failed.
  std::vector<std::byte> scratch_;
  std::vector<std::byte> packed_;
};

}  // namespace

std::unique_ptr<Fabric> make_message_fabric(transport::Engine& engine, Deadline deadline) {
  return std::make_unique<MessageFabric>(engine.connect(deadline), engine.hosts());
}

}  // namespace cohort::group
