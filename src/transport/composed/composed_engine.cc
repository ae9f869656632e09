#include "transport/composed/composed_engine.h"

#include <utility>

#include "cluster/prefix_store.h"
#include "transport/composed/composed_transport.h"
#include "transport/gloo/gloo_engine.h"
#include "transport/rank_group.h"
#include "transport/shm/shm_engine.h"

namespace cohort {
namespace {

class ComposedEngine : public Engine {
 public:
  /// Both know all ranks; `inside` sends only to those of this host.
  ComposedEngine(const EngineOptions& options, Peers peers, std::unique_ptr<Store> store,
                 Deadline deadline)
      : options_(options),
        peers_(std::move(peers)),
        store_(std::move(store)),
        inside_(make_shm_engine(options_, peers_, *store_, deadline)),
        outside_(make_gloo_engine(options_, peers_, *store_, deadline)) {}

  std::string name() const override { return "shm+gloo"; }
  std::string address() const override { return options_.address; }
  int rank() const override { return options_.rank; }
  int world() const override { return options_.world; }
  std::vector<int> hosts() const override { return peers_.hosts; }
  SharedRegions* shared_regions() override { return nullptr; }
  bool sends_in_background() const override { return true; }

  std::unique_ptr<Transport> connect(Deadline deadline) override {
    // One after the other on every rank, or two ranks might wait for each other.
    auto inside = inside_->connect(deadline);
    return compose_transports(std::move(inside), outside_->connect(deadline), peers_.hosts);
  }

  std::unique_ptr<Engine> group(std::span<const int> ranks, Deadline deadline) override {
    const RankGroup group(ranks, rank(), world());
    const Peers peers{.rank = group.rank(), .hosts = group.hosts_among(peers_.hosts)};
    if (peers.elsewhere() < 0) return inside_->group(ranks, deadline);
    if (!peers.any_share_a_host()) return outside_->group(ranks, deadline);
    EngineOptions options = options_;
    options.rank = group.rank();
    options.world = group.world();
    return std::make_unique<ComposedEngine>(
        options, peers, std::make_unique<PrefixStore>(*store_, keys_.next(group)), deadline);
  }

 private:
  EngineOptions options_;
  Peers peers_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Engine> inside_;
  std::unique_ptr<Engine> outside_;
  GroupKeys keys_;
};

}  // namespace

std::unique_ptr<Engine> make_composed_engine(const EngineOptions& options, const Peers& peers,
                                             Store& store, Deadline deadline) {
  return std::make_unique<ComposedEngine>(
      options, peers, std::make_unique<PrefixStore>(store, "composed/"), deadline);
}

}  // namespace cohort
