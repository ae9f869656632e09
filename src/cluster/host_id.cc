#include "cluster/host_id.h"

#include <unistd.h>

#include <climits>
#include <filesystem>

#include "base/files.h"

namespace cohort::cluster {
namespace {

std::string namespace_of(const char* kind) {
  std::error_code unreadable;
  const auto link = std::filesystem::read_symlink(std::string("/proc/self/ns/") + kind, unreadable);
  return unreadable ? std::string() : link.string();
}

}  // namespace

std::string host_id() {
  return read_kernel_file("/proc/sys/kernel/random/boot_id") + namespace_of("pid") +
         namespace_of("net");
}

std::vector<std::string> hosts_of_ranks(Store& store, int rank, int world, Deadline deadline) {
  const auto key_of = [&](int of) { return "host" + store.mark_of_rank(of); };
  store.set(key_of(rank), host_id());
  std::vector<std::string> hosts;
  for (int of = 0; of < world; ++of) hosts.push_back(store.get(key_of(of), deadline));
  return hosts;
}

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

}  // namespace cohort::cluster
