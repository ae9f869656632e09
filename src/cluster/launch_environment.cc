#include "cluster/launch_environment.h"

#include <sys/stat.h>

#include <cerrno>

#include "base/fail.h"
#include "base/integers.h"

namespace cohort::cluster {
namespace {

std::string text_of(const os::GetVariable& get, const char* name) {
  const char* value = get(name);
  return value == nullptr ? "" : value;
}

/// More processes than any launcher starts.
constexpr int kMost = 1 << 20;
constexpr int kLastPort = 65535;

int number_of(const os::GetVariable& get, const char* name, int smallest, int largest = kMost) {
  const std::string text = text_of(get, name);
  if (text.empty()) {
    fail(ErrorCode::invalid,
         "{} is not set; a worker started by hand or by torchrun needs RANK, WORLD_SIZE, "
         "MASTER_ADDR and MASTER_PORT",
         name);
  }
  const auto value = parse_integer(text, smallest, largest);
  if (!value) {
    fail(ErrorCode::invalid, "{}={} is not a whole number from {} to {}", name, excerpt(text),
         smallest, largest);
  }
  return static_cast<int>(*value);
}

int number_or(const os::GetVariable& get, const char* name, int smallest, int otherwise) {
  return text_of(get, name).empty() ? otherwise : number_of(get, name, smallest);
}

/// Of this host alone, whichever that is.
bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

}  // namespace

std::optional<LaunchEnvironment> launch_environment(const os::GetVariable& get) {
  if (get("RANK") == nullptr && get("WORLD_SIZE") == nullptr) return std::nullopt;
  LaunchEnvironment place;
  place.rank = number_of(get, "RANK", 0);
  place.world = number_of(get, "WORLD_SIZE", 1);
  place.local_rank = number_or(get, "LOCAL_RANK", 0, 0);
  place.local_world = number_or(get, "LOCAL_WORLD_SIZE", 1, place.local_rank + 1);
  place.master_port = number_of(get, "MASTER_PORT", 1, kLastPort);
  place.master_host = text_of(get, "MASTER_ADDR");
  if (place.master_host.empty()) {
    fail(ErrorCode::invalid, "MASTER_ADDR is not set; it names the host of rank 0");
  }
  if (place.rank >= place.world) {
    fail(ErrorCode::invalid, "RANK={} must be below WORLD_SIZE={}", place.rank, place.world);
  }
  if (place.local_rank >= place.local_world) {
    fail(ErrorCode::invalid, "LOCAL_RANK={} must be below LOCAL_WORLD_SIZE={}", place.local_rank,
         place.local_world);
  }
  place.agent_store = text_of(get, "TORCHELASTIC_USE_AGENT_STORE") == "True";
  place.incarnation =
      text_of(get, "TORCHELASTIC_RUN_ID") + "/" + text_of(get, "TORCHELASTIC_RESTART_COUNT");
  const bool all_here =
      !text_of(get, "LOCAL_WORLD_SIZE").empty() && place.local_world == place.world;
  place.one_host = place.world == 1 || all_here || is_loopback(place.master_host);
  place.secret_file = text_of(get, "COHORT_SECRET_FILE");
  place.insecure = text_of(get, "COHORT_INSECURE") == "1";
  return place;
}

void check_trust(const LaunchEnvironment& environment) {
  if (environment.one_host) return;
  if (!environment.insecure) {
    fail(ErrorCode::invalid,
         "this run goes between hosts, and what it sends there is not encrypted; where the network "
         "is trusted say so with --insecure or COHORT_INSECURE=1 (SECURITY.md)");
  }
  if (environment.secret_file.empty()) {
    fail(ErrorCode::invalid,
         "this run goes between hosts: name a file with the run's secret on each of them by "
         "COHORT_SECRET_FILE (make one with: head -c 32 /dev/urandom > FILE; chmod 600 FILE)");
  }
}

Pass pass_of(const LaunchEnvironment& environment) {
  const std::string run = fmt::format("{}:{}/{}", environment.master_host, environment.master_port,
                                      environment.incarnation);
  const std::string user = os::user_folder();
  const Secret secret = environment.secret_file.empty()
                            ? Secret::in_file(user + "/secret").of(run)
                            : Secret::from_file(environment.secret_file);
  const Secret::Mac name = secret.of(run).mac({});
  std::string folder = user + "/run-";
  for (std::size_t i = 0; i < 8; ++i) folder += fmt::format("{:02x}", static_cast<int>(name[i]));
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) fail_errno("Cannot make " + folder);
  return {secret, nullptr, folder};
}

}  // namespace cohort::cluster
