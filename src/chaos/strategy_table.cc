#include "chaos/strategy_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "base/nearest_name.h"

namespace cohort {
namespace {

constexpr std::int64_t kAveragedSteps = 8;

TestedStrategy allreduce(const std::string& name, const std::string& algorithm,
                         const std::string& engine) {
  return {.name = name,
          .settings = {"strategy.kind=allreduce", "strategy.algorithm=" + algorithm,
                       "cluster.engine=" + engine, "cluster.servers=0"},
          .same_parameters = true};
}

std::string servers_setting(int servers) {
  return fmt::format("cluster.servers={}", servers);
}

TestedStrategy server(const std::string& consistency, int servers) {
  const bool sync = consistency == "sync";
  return {.name = "server-" + consistency,
          .settings = {"strategy.kind=parameter-server", "strategy.consistency=" + consistency,
                       servers_setting(servers)},
          .servers = servers,
          .lockstep = sync,
          .same_parameters = sync};
}

TestedStrategy averaging(const std::string& mode, int servers) {
  return {.name = "averaging-" + mode,
          .settings = {"strategy.kind=averaging", "strategy.mode=" + mode,
                       fmt::format("strategy.every={}", kAveragedSteps), servers_setting(servers)},
          .servers = servers,
          .lockstep = mode == "sync",
          .steps_per_push = kAveragedSteps};
}

}  // namespace

std::vector<TestedStrategy> all_tested_strategies(const ClusterSize& size) {
  const int servers = std::max(1, size.servers);
  const std::string all_but_one = fmt::format("strategy.quorum={}", std::max(1, size.workers - 1));
  TestedStrategy k_of_n = server("k-of-n", servers);
  k_of_n.settings.push_back(all_but_one);
  TestedStrategy partial = averaging("partial", servers);
  partial.settings.push_back(all_but_one);
  const TestedStrategy gossip{.name = "gossip",
                              .settings = {"strategy.kind=gossip", "cluster.servers=0"},
                              .lockstep = false};
  std::vector<TestedStrategy> all = {allreduce("allreduce", "auto", "shm"),
                                     allreduce("allreduce-ring", "ring", "shm"),
                                     allreduce("allreduce-gloo", "ring", "gloo"),
                                     server("sync", servers),
                                     server("async", servers),
                                     server("bounded", servers),
                                     k_of_n,
                                     averaging("sync", servers),
                                     partial,
                                     gossip};
  const auto with_the_users_job = all.size();
  for (std::size_t i = 0; i < with_the_users_job; ++i) {
    if (all[i].lockstep) continue;
    all.push_back(all[i]);
    all.back().name += "-movement";
    all.back().movement = true;
  }
  return all;
}

std::vector<TestedStrategy> choose_strategies(const std::string& names, const ClusterSize& size) {
  std::vector<TestedStrategy> all = all_tested_strategies(size);
  if (names.empty()) return all;
  std::vector<std::string> known;
  for (const TestedStrategy& strategy : all) known.push_back(strategy.name);
  std::vector<TestedStrategy> chosen;
  std::istringstream words(names);
  for (std::string name; std::getline(words, name, ',');) {
    check_known("--strategies", name, known);
    chosen.push_back(*std::ranges::find(all, name, &TestedStrategy::name));
  }
  return chosen;
}

}  // namespace cohort
