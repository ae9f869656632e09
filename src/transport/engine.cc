#include "transport/engine.h"

#include <algorithm>
#include <map>

#include "base/fail.h"
#include "base/names.h"
#include "cluster/host_id.h"
#include "transport/engine_table.h"

namespace cohort::transport {
namespace {

/// Every rank tells the store which host it is on and waits for all others to do so; hosts are then
/// numbered in the order of the ranks, by each rank for itself, with the same result.
Peers find_peers(const EngineOptions& options, cluster::Store& store, Deadline deadline) {
  Peers peers{.rank = options.rank, .hosts = {}};
  std::map<std::string, int> numbers;
  for (const std::string& host :
       cluster::hosts_of_ranks(store, options.rank, options.world, deadline)) {
    peers.hosts.push_back(numbers.emplace(host, static_cast<int>(numbers.size())).first->second);
  }
  return peers;
}

/// What `auto` means for these ranks: the table's last engine for processes (gloo) never objects.
const EngineRow& best_engine(const Peers& peers) {
  return *std::ranges::find_if(engine_table(),
                               [&](const EngineRow& row) { return row.objection(peers).empty(); });
}

}  // namespace

std::unique_ptr<Engine> make_engine(const EngineOptions& options, cluster::Store& store,
                                    Deadline deadline) {
  check_known("engine", options.name, engine_names());
  const Peers peers = find_peers(options, store, deadline);
  const EngineRow& best = best_engine(peers);
  if (options.name == kAutoEngine) return best.make(options, peers, store, deadline);
  const EngineRow& row = row_named("engine", options.name, engine_table());
  if (const std::string objection = row.objection(peers); !objection.empty()) {
    fail(ErrorCode::unsupported, "engine {} {}; use {}", row.name, objection, best.name);
  }
  return row.make(options, peers, store, deadline);
}

}  // namespace cohort::transport
