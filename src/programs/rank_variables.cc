#include "programs/rank_variables.h"

#include <fmt/format.h>

#include "kernel/fast_settings.h"
#include "kernel/machine.h"

namespace cohort::programs {

std::vector<std::string> place_variables(const ProgramRun& run, const RankPlace& place) {
  const int rank = rank_of(run, place.local_rank);
  const int world = run.hosts * run.ranks_per_host;
  std::vector<std::string> variables;
  const auto set = [&](const char* name, const auto& value) {
    variables.push_back(fmt::format("{}={}", name, value));
  };
  set("RANK", rank);
  set("WORLD_SIZE", world);
  set("LOCAL_RANK", place.local_rank);
  set("LOCAL_WORLD_SIZE", run.ranks_per_host);
  set("GROUP_RANK", run.host);
  set("GROUP_WORLD_SIZE", run.hosts);
  set("ROLE_NAME", "default");
  set("ROLE_RANK", rank);
  set("ROLE_WORLD_SIZE", world);
  set("MASTER_ADDR", run.master_address);
  set("MASTER_PORT", place.port);
  set("TORCHELASTIC_RESTART_COUNT", place.restart);
  set("TORCHELASTIC_MAX_RESTARTS", run.max_restarts);
  set("TORCHELASTIC_RUN_ID", run.run_id);
  if (run.insecure) set("COHORT_INSECURE", 1);
  variables.emplace_back("TORCHELASTIC_USE_AGENT_STORE");
  variables.emplace_back("COHORT_ADDRESS");
  return variables;
}

std::vector<std::string> compute_variables(int threads, const os::GetVariable& get) {
  const auto chosen = kernel::chosen_threads(get);
  auto variables = kernel::as_variables(
      kernel::settings_to_start_with(kernel::this_machine(), chosen.value_or(threads), get));
  if (get("OMP_NUM_THREADS") != nullptr) return variables;
  variables.push_back(fmt::format("OMP_NUM_THREADS={}", threads));
  if (get("OPENBLAS_NUM_THREADS") == nullptr) {
    variables.push_back(fmt::format("OPENBLAS_NUM_THREADS={}", threads));
  }
  return variables;
}

}  // namespace cohort::programs
