#include "meet/this_host.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <span>
#include <sstream>
#include <string>

#include "base/crc32c.h"
#include "base/fail.h"
#include "cluster/host_id.h"

namespace cohort::meet {
namespace {

std::string text_of(const std::vector<int>& cores) {
  return fmt::format("{}", fmt::join(cores, " "));
}

std::vector<int> cores_in(const std::string& text) {
  std::istringstream stream(text);
  std::vector<int> cores;
  for (int core = 0; stream >> core;) cores.push_back(core);
  if (!stream.eof()) fail(ErrorCode::corrupt, "\"{}\" is no list of cores", text);
  return cores;
}

}  // namespace

os::LocalPlace local_place(cluster::Store& store, int rank, int world, Deadline deadline) {
  const auto hosts = cluster::hosts_of_ranks(store, rank, world, deadline);
  const std::string& here = hosts[static_cast<std::size_t>(rank)];
  return {.local_rank = static_cast<int>(std::count(hosts.begin(), hosts.begin() + rank, here)),
          .local_workers = static_cast<int>(std::ranges::count(hosts, here))};
}

HostShare share_among(const std::vector<std::vector<int>>& all, int local_rank) {
  const auto own = all.begin() + local_rank;
  std::set<int> together;
  for (const std::vector<int>& cores : all) together.insert(cores.begin(), cores.end());
  const auto before = static_cast<int>(std::count(all.begin(), own, *own));
  const auto sharers = static_cast<int>(std::ranges::count(all, *own));
  return {.place = {.local_rank = local_rank, .local_workers = static_cast<int>(all.size())},
          .cores = os::share_of_cores(*own, before, sharers),
          .cores_of_all = std::max(1, static_cast<int>(together.size()))};
}

HostShare find_host_share(cluster::Store& store, int rank, int world, Deadline deadline) {
  const auto hosts = cluster::hosts_of_ranks(store, rank, world, deadline);
  const auto key_of = [&](int of) { return "cores" + store.mark_of_rank(of); };
  store.set(key_of(rank), text_of(os::usable_core_numbers()));
  std::vector<std::vector<int>> all;
  int local_rank = 0;
  for (int of = 0; of < world; ++of) {
    if (hosts[static_cast<std::size_t>(of)] != hosts[static_cast<std::size_t>(rank)]) continue;
    if (of == rank) local_rank = static_cast<int>(all.size());
    all.push_back(cores_in(store.get(key_of(of), deadline)));
  }
  return share_among(all, local_rank);
}

StoreOfThisHost::StoreOfThisHost(cluster::Store& all, bool serves, const cluster::Member& self,
                                 Deadline deadline) {
  const cluster::Pass& pass = all.pass();
  const std::string host = cluster::host_id();
  const std::string endpoint = pass.endpoint_of(
      fmt::format("unix:host-{:08x}", crc32c(std::as_bytes(std::span(host.data(), host.size())))));
  if (serves) {
    server_.emplace(endpoint, pass);
    server_->start();
  }
  client_.emplace(endpoint, pass, deadline, self);
  joined_.emplace(all, *client_);
}

}  // namespace cohort::meet
