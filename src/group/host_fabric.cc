#include <algorithm>

#include "collective/host/copies.h"
#include "collective/host/host_exchange.h"
#include "group/fabric.h"
#include "group/shared_arrays.h"

namespace cohort::group {
namespace {

std::span<const std::byte> record_of(const Call& call) {
  return std::as_bytes(std::span(&call, 1));
}

/// Everything through shared memory: where all arrays stand in it already (SharedArrays) they are
/// worked on there, else through stages. An all-reduce of few elements is one round: they stand
/// behind the record, and every rank reduces all of them for itself, in the same order.
class HostFabric : public Fabric {
 public:
  HostFabric(std::shared_ptr<transport::Engine> engine, std::span<std::byte> region,
             os::WaitPolicy policy)
      : exchange_(engine->rank(), engine->world(), region, engine->shared_regions()->watch(),
                  policy),
        shared_(std::move(engine)),
        calls_(static_cast<std::size_t>(exchange_.world())),
        contents_(static_cast<std::size_t>(exchange_.world())) {}

  std::span<const Call> agree(const Call& call, std::span<const Array> arrays,
                              Deadline deadline) override {
    Call placed = call;
    placed.place = shared_.find(arrays, copies_);
    agree_with(placed, {}, deadline);
    in_place_ = share_a_place(calls_);
    return calls_;
  }

  void all_reduce(const Call& call, std::span<const Array> arrays, Deadline deadline) override {
    if (exchange_.world() == 1) return;
    const int divisor = call.mean != 0 ? exchange_.world() : 1;
    if (bytes_of_all(arrays) <= collective::HostExchange::kSmallBytes) {
      return as_one(arrays, packed_, [&](collective::Elements elements) {
        all_reduce_small(call, elements, divisor, deadline);
      });
    }
    agree(call, arrays, deadline);
    if (in_place_) {
      collective::reduce_copies(copies_, exchange_.rank(), exchange_.world(), call.how, divisor);
      return exchange_.pass(deadline, "end of the all-reduce in place");
    }
    as_one(arrays, packed_, [&](collective::Elements elements) {
      exchange_.all_reduce(elements, call.how, divisor, deadline);
    });
  }

  void reduce_scatter(const Call& call, collective::Elements given, collective::Elements out,
                      Deadline deadline) override {
    const int divisor = call.mean != 0 ? exchange_.world() : 1;
    if (!in_place_) return exchange_.reduce_scatter(given, out, call.how, divisor, deadline);
    const std::size_t begin = static_cast<std::size_t>(exchange_.rank()) * out.bytes().size();
    for (int rank = 0; rank < exchange_.world(); ++rank) {
      contents_[static_cast<std::size_t>(rank)] = copies_.front().of(rank) + begin;
    }
    collective::reduce_of({out.type(), call.how}, out.bytes(), contents_);
    collective::divide(out, divisor);
    exchange_.pass(deadline, "end of the reduce-scatter in place");
  }

  void broadcast(std::span<const Array> arrays, int root, Deadline deadline) override {
    if (exchange_.world() == 1) return;
    if (!in_place_) {
      return as_one(arrays, packed_, [&](collective::Elements elements) {
        exchange_.broadcast(elements.bytes(), root, deadline);
      });
    }
    for (const collective::Copies& array : copies_) {
      if (root == exchange_.rank()) break;
      const std::span from(array.of(root), array.first.bytes().size());
      std::ranges::copy(from, array.of(exchange_.rank()));
    }
    exchange_.pass(deadline, "end of the broadcast in place");
  }

  void all_gather(std::span<const std::byte> given, std::span<const std::span<std::byte>> taken,
                  Deadline deadline) override {
    if (exchange_.world() > 1) return exchange_.all_gather(given, taken, deadline);
    std::ranges::copy(given, taken.front().begin());
  }

  void all_to_all(std::span<const std::byte> given, std::span<std::byte> taken,
                  Deadline deadline) override {
    exchange_.all_to_all(given, taken, deadline);
  }

  std::optional<Memory> empty(std::size_t bytes, std::uint64_t room, Deadline deadline) override {
    if (exchange_.world() > 1) {
      return shared_.take(bytes, free_everywhere(deadline), room, deadline);
    }
    if (bytes > room) return std::nullopt;
    return plain_memory(bytes);
  }

  void abandon() noexcept override { exchange_.leave(); }

 private:
  /// Calls are copied before they are compared: where ranks share memory it could change meanwhile.
  void agree_with(const Call& call, std::span<const std::byte> content, Deadline deadline) {
    exchange_.begin(record_of(call), content, deadline);
    for (int rank = 0; rank < exchange_.world(); ++rank) {
      calls_[static_cast<std::size_t>(rank)] = call_in(exchange_.record_of(rank), rank);
    }
    check_agreement(calls_);
  }

  void all_reduce_small(const Call& call, collective::Elements elements, int divisor,
                        Deadline deadline) {
    agree_with(call, elements.bytes(), deadline);
    for (int rank = 0; rank < exchange_.world(); ++rank) {
      contents_[static_cast<std::size_t>(rank)] = exchange_.content_of(rank);
    }
    collective::reduce_of({elements.type(), call.how}, elements.bytes(), contents_);
    collective::divide(elements, divisor);
  }

  /// What every rank has let go of.
  std::vector<std::byte> free_everywhere(Deadline deadline) {
    std::vector<std::byte> free = shared_.let_go();
    const std::vector<std::byte> own = free;
    std::vector<std::byte> of_all(own.size() * calls_.size());
    std::vector<std::span<std::byte>> taken;
    for (std::size_t rank = 0; rank < calls_.size(); ++rank) {
      taken.push_back(std::span(of_all).subspan(rank * own.size(), own.size()));
    }
    exchange_.all_gather(own, taken, deadline);
    for (const auto& flags : taken)
      std::ranges::transform(free, flags, free.begin(), std::bit_and());
    return free;
  }

  collective::HostExchange exchange_;
  SharedArrays shared_;
  std::vector<Call> calls_;
  std::vector<const std::byte*> contents_;
  std::vector<collective::Copies> copies_;  // Of the call that was agreed on,
  bool in_place_ = false;                   // where they stand in the same place on all ranks.
  std::vector<std::byte> packed_;
};

}  // namespace

std::unique_ptr<Fabric> make_host_fabric(std::shared_ptr<transport::Engine> engine, int cores,
                                         Deadline deadline) {
  const int world = engine->world();
  const auto region =
      engine->shared_regions()->region(collective::HostExchange::bytes_needed(world), deadline);
  return std::make_unique<HostFabric>(std::move(engine), region,
                                      os::WaitPolicy::for_ranks(world, cores));
}

std::unique_ptr<Fabric> make_fabric(std::shared_ptr<transport::Engine> engine, int cores,
                                    Deadline deadline) {
  if (engine->shared_regions() == nullptr) return make_message_fabric(*engine, deadline);
  return make_host_fabric(std::move(engine), cores, deadline);
}

}  // namespace cohort::group
