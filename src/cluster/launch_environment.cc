#include "cluster/launch_environment.h"

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
  return place;
}

}  // namespace cohort::cluster
