#include "transport/composed/composed_transport.h"

#include <utility>

#include "base/fail.h"

namespace cohort {
namespace {

/// Knows which of the two has begun it.
class ComposedOperation : public Operation {
 public:
  ComposedOperation(Transport& by, OperationPtr operation)
      : by_(by), operation_(std::move(operation)) {}

  void wait(Deadline deadline) { by_.wait(*operation_, deadline); }

 private:
  Transport& by_;
  OperationPtr operation_;
};

class ComposedTransport : public Transport {
 public:
  ComposedTransport(std::unique_ptr<Transport> inside, std::unique_ptr<Transport> outside,
                    std::vector<int> hosts)
      : inside_(std::move(inside)), outside_(std::move(outside)), hosts_(std::move(hosts)) {}

  ~ComposedTransport() override { ComposedTransport::close(); }

  int rank() const override { return outside_->rank(); }
  int size() const override { return outside_->size(); }

  OperationPtr isend(int peer, Tag tag, std::span<const std::byte> bytes) override {
    Transport& way = way_to(peer);
    return std::make_unique<ComposedOperation>(way, way.isend(peer, tag, bytes));
  }

  OperationPtr irecv(int peer, Tag tag, std::span<std::byte> bytes) override {
    Transport& way = way_to(peer);
    return std::make_unique<ComposedOperation>(way, way.irecv(peer, tag, bytes));
  }

  void wait(Operation& operation, Deadline deadline) override {
    static_cast<ComposedOperation&>(operation).wait(deadline);
  }

  void close() noexcept override {
    inside_->close();
    outside_->close();
  }

  std::uint64_t bytes_sent() const override {
    return inside_->bytes_sent() + outside_->bytes_sent();
  }
  std::uint64_t bytes_received() const override {
    return inside_->bytes_received() + outside_->bytes_received();
  }

 private:
  /// Who is no peer at all is refused by either.
  Transport& way_to(int peer) const {
    const bool exists = peer >= 0 && peer < size();
    return exists && host_of(peer) == host_of(rank()) ? *inside_ : *outside_;
  }

  int host_of(int rank) const { return hosts_[static_cast<std::size_t>(rank)]; }

  std::unique_ptr<Transport> inside_;
  std::unique_ptr<Transport> outside_;
  std::vector<int> hosts_;
};

}  // namespace

std::unique_ptr<Transport> compose_transports(std::unique_ptr<Transport> inside,
                                              std::unique_ptr<Transport> outside,
                                              std::vector<int> hosts) {
  return std::make_unique<ComposedTransport>(std::move(inside), std::move(outside),
                                             std::move(hosts));
}

}  // namespace cohort
