#include "cluster/pass.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "base/fail.h"
#include "os/endpoint.h"

namespace cohort::cluster {

std::string name_of(const Member& member) {
  return fmt::format("{} {}", member.role == Member::Role::worker ? "worker" : "server",
                     member.number);
}

std::string mark_of(const Member& member) {
  std::string mark = fmt::format("@{}", name_of(member));
  std::ranges::replace(mark, ' ', '-');
  return mark;
}

Pass Pass::draw() {
  const auto folder = std::make_shared<const os::PrivateFolder>();
  return {Secret::draw(), folder, folder->path()};
}

std::string Pass::new_address(const std::string& name) const {
  static std::atomic<int> count = 0;
  return os::unix_endpoint(fmt::format("{}-{}-{}", name, ::getpid(), count++));
}

std::string Pass::endpoint_of(const std::string& address) const {
  if (!os::is_unix(address)) return address;
  const std::string name = address.substr(os::unix_endpoint("").size());
  if (name.empty() || name.starts_with('.') || name.find('/') != std::string::npos) {
    fail(ErrorCode::corrupt, "\"{}\" is no address of a task on this host.", excerpt(address));
  }
  return os::unix_endpoint(folder + "/" + name);
}

}  // namespace cohort::cluster
