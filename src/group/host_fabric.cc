#include "collective/host/host_exchange.h"
#include "group/fabric.h"

namespace cohort::group {
namespace {

std::span<const std::byte> record_of(const Call& call) {
  return std::as_bytes(std::span(&call, 1));
}

/// Everything through stages in shared memory. An all-reduce of few elements is one round: they
/// stand behind the record, and every rank reduces all of them for itself, in the same order.
class HostFabric : public Fabric {
 public:
  HostFabric(int rank, int world, std::span<std::byte> region, os::PeerWatch watch,
             os::WaitPolicy policy)
      : exchange_(rank, world, region, std::move(watch), policy),
        calls_(static_cast<std::size_t>(world)),
        contents_(static_cast<std::size_t>(world)) {}

  std::span<const Call> agree(const Call& call, Deadline deadline) override {
    return agree_with(call, {}, deadline);
  }

  void all_reduce(const Call& call, collective::Elements elements, Deadline deadline) override {
    const int divisor = call.mean != 0 ? exchange_.world() : 1;
    if (elements.bytes().size() > collective::HostExchange::kSmallBytes) {
      agree_with(call, {}, deadline);
      return exchange_.all_reduce(elements, call.how, divisor, deadline);
    }
    agree_with(call, elements.bytes(), deadline);
    for (int rank = 0; rank < exchange_.world(); ++rank) {
      contents_[static_cast<std::size_t>(rank)] = exchange_.content_of(rank);
    }
    collective::reduce_of({elements.type(), call.how}, elements.bytes(), contents_);
    collective::divide(elements, divisor);
  }

  void reduce_scatter(const Call& call, collective::Elements given, collective::Elements out,
                      Deadline deadline) override {
    exchange_.reduce_scatter(given, out, call.how, call.mean != 0 ? exchange_.world() : 1,
                             deadline);
  }

  void broadcast(std::span<std::byte> bytes, int root, Deadline deadline) override {
    exchange_.broadcast(bytes, root, deadline);
  }

  void all_gather(std::span<const std::byte> given, std::span<const std::span<std::byte>> taken,
                  Deadline deadline) override {
    exchange_.all_gather(given, taken, deadline);
  }

  void all_to_all(std::span<const std::byte> given, std::span<std::byte> taken,
                  Deadline deadline) override {
    exchange_.all_to_all(given, taken, deadline);
  }

  void abandon() noexcept override { exchange_.leave(); }

 private:
  /// Calls are copied before they are compared: where ranks share memory it could change meanwhile.
  std::span<const Call> agree_with(const Call& call, std::span<const std::byte> content,
                                   Deadline deadline) {
    exchange_.begin(record_of(call), content, deadline);
    for (int rank = 0; rank < exchange_.world(); ++rank) {
      calls_[static_cast<std::size_t>(rank)] = call_in(exchange_.record_of(rank), rank);
    }
    check_agreement(calls_);
    return calls_;
  }

  collective::HostExchange exchange_;
  std::vector<Call> calls_;
  std::vector<const std::byte*> contents_;
};

}  // namespace

std::unique_ptr<Fabric> make_host_fabric(transport::Engine& engine, int cores, Deadline deadline) {
  transport::SharedRegions& regions = *engine.shared_regions();
  const auto region =
      regions.region(collective::HostExchange::bytes_needed(engine.world()), deadline);
  return std::make_unique<HostFabric>(engine.rank(), engine.world(), region, regions.watch(),
                                      os::WaitPolicy::for_ranks(engine.world(), cores));
}

std::unique_ptr<Fabric> make_fabric(transport::Engine& engine, int cores, Deadline deadline) {
  if (engine.shared_regions() != nullptr) return make_host_fabric(engine, cores, deadline);
  return make_message_fabric(engine, deadline);
}

}  // namespace cohort::group
