#include "bench/peers.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>

#include "base/fail.h"
#include "base/unique_fd.h"
#include "kernel/kernel_report.h"

namespace cohort::bench {
namespace {

/// Whatever the user's environment says: a worker has one core.
const ProgramVariables kOneThread = {{"OMP_NUM_THREADS", "1"}, {"OPENBLAS_NUM_THREADS", "1"}};

ProgramVariables with_one_thread(ProgramVariables variables) {
  variables.insert(variables.end(), kOneThread.begin(), kOneThread.end());
  return variables;
}

std::filesystem::path this_binary() {
  return std::filesystem::read_symlink("/proc/self/exe");
}

}  // namespace

PeerSetting as_installed(const std::vector<kernel::Setting>& set_by_cohort) {
  ProgramVariables variables = {{kernel::kMark, std::nullopt}};
  for (const kernel::Setting& one : set_by_cohort) variables.push_back({one.name, std::nullopt});
  return {"", with_one_thread(variables), false};
}

const PeerSetting& as_installed() {
  static const PeerSetting setting = as_installed(kernel::kernel_report().set);
  return setting;
}

const PeerSetting& tuned() {
  static const PeerSetting setting{", tuned",
                                   with_one_thread({{"MALLOC_MMAP_THRESHOLD_", "1073741824"},
                                                    {"MALLOC_TRIM_THRESHOLD_", "17179869184"},
                                                    {"GLIBC_TUNABLES", "glibc.malloc.hugetlb=1"}}),
                                   true};
  return setting;
}

std::optional<std::string> peer_program(const std::string& name) {
  const auto path = this_binary().parent_path() / "bench" / name;
  if (!std::filesystem::exists(path)) return std::nullopt;
  return path.string();
}

std::optional<Python> python_with_torch(const std::string& wanted) {
  // The system's Python first: distributions' packages serve only that one, and users often have
  // another one before it in PATH.
  const std::vector<std::string> by_itself = {"/usr/bin/python3", "python3"};
  for (const auto& python : wanted.empty() ? by_itself : std::vector{wanted}) {
    const Program probe{
        {python, "-c", "import torch.distributed; print(torch.__version__, end='')"}, {}, -1};
    const Finished finished = run_together({{probe}});
    if (finished.succeeded) return Python{python, finished.outputs.front()};
    if (!wanted.empty()) {
      fail(ErrorCode::invalid, "--python {} has no PyTorch with torch.distributed: {}", wanted,
           finished.problem);
    }
  }
  return std::nullopt;
}

Program under_mpirun(int ranks, const std::string& program, const std::vector<std::string>& words) {
  // The ranks bind themselves, as mpirun cannot bind more ranks than there are cores.
  return {joined({"mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n",
                  std::to_string(ranks), program},
                 words),
          {},
          -1};
}

Program cohort_run(int ranks, const std::string& program, const std::vector<std::string>& words) {
  return {
      joined({this_binary(), "run", "-n", std::to_string(ranks), "--no-prefix", program}, words),
      kOneThread, -1};
}

Program cohort_worker(const std::vector<std::string>& words) {
  return {joined({this_binary(), "bench", "worker"}, words), kOneThread, -1};
}

std::vector<std::string> joined(std::vector<std::string> first,
                                const std::vector<std::string>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

int free_port() {
  const UniqueFd probe(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (bind(probe.get(), reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      getsockname(probe.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    fail_errno("cannot find a free port for a measured program");
  }
  return ntohs(address.sin_port);
}

}  // namespace cohort::bench
