#include "transport/gloo/gloo.h"

#include <utility>

#include "cluster/store.h"
#include "transport/rank_group.h"

namespace cohort::transport {
namespace {

/// Nothing is connected before connect(): an engine is only options and a place in the store. Ranks
/// find each other under "gloo/<number of the connect() call>/", below the prefix of their group,
/// which is why all ranks must call connect() in the same order.
class GlooEngine : public Engine {
 public:
  GlooEngine(const EngineOptions& options, std::vector<int> hosts,
             std::unique_ptr<cluster::Store> store)
      : Engine({.name = "gloo",
                .rank = options.rank,
                .hosts = std::move(hosts),
                .address = options.address,
                .sends_in_background = true}),
        options_(options),
        store_(std::move(store)) {}

  SharedRegions* shared_regions() override { return nullptr; }

  std::unique_ptr<Transport> connect(Deadline deadline) override {
    GlooOptions gloo;
    gloo.bind_address = options_.address;
    gloo.connect_timeout = deadline.remaining();
    gloo.key_prefix = "gloo/" + std::to_string(connections_++) + "/";
    return make_gloo_transport(rank(), world(), *store_, gloo);
  }

  std::unique_ptr<Engine> group(std::span<const int> ranks, Deadline) override {
    const RankGroup group(ranks, rank(), world());
    EngineOptions options = options_;
    options.rank = group.rank();
    options.world = group.world();
    return std::make_unique<GlooEngine>(
        options, group.hosts_among(hosts()),
        std::make_unique<cluster::PrefixStore>(*store_, keys_.next(group), nullptr, group.ranks()));
  }

 private:
  EngineOptions options_;
  std::unique_ptr<cluster::Store> store_;
  GroupKeys keys_;
  int connections_ = 0;  // How many connect() has made; all ranks count alike.
};

}  // namespace

std::unique_ptr<Engine> make_gloo_engine(const EngineOptions& options, const Peers& peers,
                                         cluster::Store& store, Deadline) {
  return std::make_unique<GlooEngine>(options, peers.hosts,
                                      std::make_unique<cluster::PrefixStore>(store, ""));
}

}  // namespace cohort::transport
