#include "cluster/launch_environment.h"

#include <span>

#include "base/fail.h"
#include "base/integers.h"
#include "os/private_folder.h"

namespace cohort::cluster {
namespace {

/// What a launcher calls the places of its processes; empty where it has no word for it.
struct Launcher {
  const char* rank;
  const char* world;
  const char* local_rank;
  const char* local_world;
  const char* run;      ///< Different for every run.
  const char* restart;  ///< And every part or restart of it.
};

constexpr Launcher kLaunchers[] = {
    {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RUN_ID",
     "TORCHELASTIC_RESTART_COUNT"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", "PMIX_NAMESPACE", ""},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "PMI_JOBID", ""},
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "", "SLURM_JOB_ID", "SLURM_STEP_ID"},
};
constexpr const Launcher& kTorchrun = kLaunchers[0];

/// More processes than any launcher starts.
constexpr int kMost = 1 << 20;
constexpr int kLastPort = 65535;

std::string text_of(const os::GetVariable& get, const char* name) {
  const char* value = *name == '\0' ? nullptr : get(name);
  return value == nullptr ? "" : value;
}

bool is_set(const os::GetVariable& get, const char* name) {
  return !text_of(get, name).empty();
}

int number_in(const std::string& text, const char* name, int smallest, int largest) {
  const auto value = parse_integer(text, smallest, largest);
  if (!value) {
    fail(ErrorCode::invalid, "{}={} is not a whole number from {} to {}", name, excerpt(text),
         smallest, largest);
  }
  return static_cast<int>(*value);
}

int number_of(const os::GetVariable& get, const char* name, int smallest, int largest = kMost) {
  const std::string text = text_of(get, name);
  if (text.empty()) {
    fail(ErrorCode::invalid,
         "{} is not set; a worker started by hand or by torchrun needs RANK, WORLD_SIZE, and "
         "MASTER_ADDR and MASTER_PORT or COHORT_ADDRESS",
         name);
  }
  return number_in(text, name, smallest, largest);
}

int number_or(const os::GetVariable& get, const char* name, int smallest, int otherwise) {
  return is_set(get, name) ? number_of(get, name, smallest) : otherwise;
}

/// Of this host alone, whichever that is.
bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

/// Variables of the first launcher must not be there in part; those of others may be leftovers of
/// something that surrounds this process.
const Launcher* launcher_of(const os::GetVariable& get) {
  if (get(kTorchrun.rank) != nullptr || get(kTorchrun.world) != nullptr) return &kTorchrun;
  for (const Launcher& launcher : std::span(kLaunchers).subspan(1)) {
    if (is_set(get, launcher.rank) && is_set(get, launcher.world)) return &launcher;
  }
  return nullptr;
}

void check_places(const LaunchEnvironment& place, const Launcher& launcher) {
  if (place.rank >= place.world) {
    fail(ErrorCode::invalid, "{}={} must be below {}={}", launcher.rank, place.rank, launcher.world,
         place.world);
  }
  if (place.local_rank >= place.local_world) {
    fail(ErrorCode::invalid, "{}={} must be below {}={}", launcher.local_rank, place.local_rank,
         launcher.local_world, place.local_world);
  }
}

bool all_are_here(const os::GetVariable& get, const Launcher& launcher,
                  const LaunchEnvironment& place) {
  if (place.world == 1) return true;
  if (is_set(get, launcher.local_world)) return place.local_world == place.world;
  // srun may speak as MPICH does, too (--mpi=pmi2).
  return text_of(get, "SLURM_STEP_NUM_NODES") == "1" &&
         text_of(get, "SLURM_STEP_NUM_TASKS") == text_of(get, launcher.world);
}

void read_address(const std::string& text, LaunchEnvironment& place) {
  const auto colon = text.rfind(':');
  place.master_host = text.substr(0, colon);
  if (place.master_host.starts_with('[') && place.master_host.ends_with(']')) {
    place.master_host = place.master_host.substr(1, place.master_host.size() - 2);
  }
  if (colon == std::string::npos || place.master_host.empty()) {
    fail(ErrorCode::invalid, "COHORT_ADDRESS={} is not host:port, of the host of rank 0",
         excerpt(text));
  }
  place.master_port = number_in(text.substr(colon + 1), "the port of COHORT_ADDRESS", 1, kLastPort);
}

/// Where the ranks meet, and whether that is on one host.
void read_meeting_point(const os::GetVariable& get, const Launcher& launcher,
                        LaunchEnvironment& place) {
  place.one_host = all_are_here(get, launcher, place);
  if (is_set(get, "COHORT_ADDRESS")) {
    read_address(text_of(get, "COHORT_ADDRESS"), place);
  } else if (&launcher == &kTorchrun || is_set(get, "MASTER_ADDR")) {
    place.master_port = number_of(get, "MASTER_PORT", 1, kLastPort);
    place.master_host = text_of(get, "MASTER_ADDR");
    if (place.master_host.empty()) {
      fail(ErrorCode::invalid, "MASTER_ADDR is not set; it names the host of rank 0");
    }
  } else if (!place.one_host || !is_set(get, launcher.run)) {
    fail(ErrorCode::invalid,
         "{}={} says that this is one of {} processes, but not where they meet: set "
         "COHORT_ADDRESS=host:port for all of them, with the host of rank 0 and a free port of it",
         launcher.rank, place.rank, place.world);
  }
  place.one_host = place.one_host || is_loopback(place.master_host);
}

}  // namespace

std::vector<const char*> launch_variables() {
  std::vector<const char*> names = {"MASTER_ADDR",          "MASTER_PORT",
                                    "COHORT_ADDRESS",       "COHORT_SECRET_FILE",
                                    "COHORT_INSECURE",      "TORCHELASTIC_USE_AGENT_STORE",
                                    "SLURM_STEP_NUM_NODES", "SLURM_STEP_NUM_TASKS"};
  for (const Launcher& launcher : kLaunchers) {
    for (const char* name : {launcher.rank, launcher.world, launcher.local_rank,
                             launcher.local_world, launcher.run, launcher.restart}) {
      if (*name != '\0') names.push_back(name);
    }
  }
  return names;
}

std::optional<LaunchEnvironment> launch_environment(const os::GetVariable& get) {
  const Launcher* const launcher = launcher_of(get);
  if (launcher == nullptr) return std::nullopt;
  LaunchEnvironment place;
  place.rank = number_of(get, launcher->rank, 0);
  place.world = number_of(get, launcher->world, 1);
  if (place.world == 1 && launcher != &kTorchrun) return std::nullopt;
  place.local_rank = number_or(get, launcher->local_rank, 0, 0);
  place.local_world = number_or(get, launcher->local_world, 1, place.local_rank + 1);
  check_places(place, *launcher);
  read_meeting_point(get, *launcher, place);
  place.agent_store = launcher == &kTorchrun && !is_set(get, "COHORT_ADDRESS") &&
                      text_of(get, "TORCHELASTIC_USE_AGENT_STORE") == "True";
  place.incarnation = text_of(get, launcher->run) + "/" + text_of(get, launcher->restart);
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

// A secret of a file belongs to several runs, as the user's does; each has its own that follows from
// it. The host of rank 0 may have other names on other hosts, and counts only among runs of one host.
Pass pass_of(const LaunchEnvironment& environment) {
  const bool of_file = !environment.secret_file.empty();
  const std::string run = fmt::format("{}:{}/{}", of_file ? "" : environment.master_host,
                                      environment.master_port, environment.incarnation);
  const Secret given = of_file ? Secret::from_file(environment.secret_file)
                               : Secret::in_file(os::user_folder() + "/secret");
  const Secret secret = given.of(run);
  const Secret::Mac mac = secret.of("folder").mac({});
  std::string name;
  for (std::size_t i = 0; i < 8; ++i) name += fmt::format("{:02x}", static_cast<int>(mac[i]));
  const auto folder = std::make_shared<const os::PrivateFolder>(name);
  return {secret, folder, folder->path()};
}

}  // namespace cohort::cluster
