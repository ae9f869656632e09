#include "transport/engine_table.h"

#include <algorithm>
#include <set>

#include "base/fail.h"
#include "base/names.h"
#include "transport/composed/composed.h"
#include "transport/gloo/gloo.h"
#include "transport/shm/shm.h"

namespace cohort::transport {
namespace {

/// Objections, as EngineRow wants them: what completes the sentence "engine x …".
std::string none(const Peers&) {
  return "";
}

std::string needs_one_host(const Peers& peers) {
  if (peers.elsewhere() < 0) return "";
  return fmt::format("needs all workers on one host, but rank {} is on another one",
                     peers.elsewhere());
}

std::string needs_hosts_of_several(const Peers& peers) {
  if (peers.elsewhere() < 0) return "is for several hosts, but all workers are on one";
  if (!peers.any_share_a_host()) return "is for hosts of several workers, but each has only one";
  return "";
}

std::string needs_threads(const Peers&) {
  return "is for workers that are threads of one process";
}

}  // namespace

int Peers::elsewhere() const {
  const int mine = hosts[static_cast<std::size_t>(rank)];
  const auto other = std::ranges::find_if(hosts, [&](int host) { return host != mine; });
  return other == hosts.end() ? -1 : static_cast<int>(other - hosts.begin());
}

bool Peers::any_share_a_host() const {
  return std::set<int>(hosts.begin(), hosts.end()).size() < hosts.size();
}

const std::vector<EngineRow>& engine_table() {
  static const std::vector<EngineRow> rows = {
      {"shm", false, "shared memory between processes of one host", needs_one_host,
       make_shm_engine},
      {"shm+gloo", false, "shared memory inside every host, TCP between them",
       needs_hosts_of_several, make_composed_engine},
      {"gloo", false, "TCP between all processes, wherever they are", none, make_gloo_engine},
      {"inproc", true, "memory of one process, for workers that are threads", needs_threads,
       nullptr},
  };
  return rows;
}

std::vector<std::string> engine_names() {
  std::vector<std::string> names = names_of(engine_table());
  names.insert(names.begin(), kAutoEngine);
  return names;
}

std::vector<std::string> engine_names(bool threads) {
  std::vector<std::string> names = {kAutoEngine};
  for (const EngineRow& row : engine_table()) {
    if (row.threads == threads) names.push_back(row.name);
  }
  return names;
}

}  // namespace cohort::transport
