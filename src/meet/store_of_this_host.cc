#include "meet/store_of_this_host.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>

#include "base/crc32c.h"
#include "cluster/host_id.h"

namespace cohort::meet {

os::LocalPlace local_place(cluster::Store& store, int rank, int world, Deadline deadline) {
  const auto hosts = cluster::hosts_of_ranks(store, rank, world, deadline);
  const std::string& here = hosts[static_cast<std::size_t>(rank)];
  return {.local_rank = static_cast<int>(std::count(hosts.begin(), hosts.begin() + rank, here)),
          .local_workers = static_cast<int>(std::ranges::count(hosts, here))};
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
