#include <cohort/kernels.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <torch/torch.h>
#include <torch/version.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "base/fail.h"
#include "base/files.h"
#include "base/unique_fd.h"
#include "cli/command.h"
#include "cli/machine_facts.h"
#include "cluster/exit_code.h"
#include "cluster/socket_store.h"
#include "kernel/kernel_report.h"
#include "os/memory.h"
#include "os/shared_wait.h"

namespace cohort::cli {
namespace {

// Each check is one function that looks at one thing and returns one finding; examine() lists them
// in the order in which they are printed. What cannot be found out is a finding, too. Only what
// makes training impossible is fatal; what makes it slower is a warning with advice.

/// `fatal` alone changes the exit code.
enum class Verdict { ok, warn, fatal };

/// One line of the report, and what to do where it is not good.
struct Finding {
  Verdict verdict = Verdict::ok;
  std::string what;
  std::string detail;
  std::string advice = "";
};

constexpr double kGiB = 1024.0 * 1024 * 1024;

/// A file of /proc or /sys without its last newline; empty where this kernel has no such file.
std::string text_of(const std::string& path) {
  try {
    std::string text = read_kernel_file(path);
    if (text.ends_with('\n')) text.pop_back();
    return text;
  } catch (const Error&) {
    return "";
  }
}

/// The cores this process may use, and the share of them that a cgroup grants.
Finding check_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof allowed, &allowed);
  const int cores = CPU_COUNT(&allowed);
  std::string detail = fmt::format("{} usable", cores);
  const auto limit = cpu_limit(text_of("/sys/fs/cgroup/cpu.max"));
  if (limit && *limit < cores) {
    return {Verdict::warn, "cores", detail + fmt::format(", but a cgroup grants {:.1f}", *limit),
            "start no more workers than the cgroup grants cores"};
  }
  if (cores > 1) return {Verdict::ok, "cores", detail};
  return {Verdict::warn, "cores", detail, "several workers will take turns on it"};
}

/// Less than a GiB available is too little for several workers.
Finding check_memory() {
  const std::string meminfo = text_of("/proc/meminfo");
  const auto total = static_cast<double>(meminfo_bytes(meminfo, "MemTotal").value_or(0));
  const auto free = static_cast<double>(meminfo_bytes(meminfo, "MemAvailable").value_or(0));
  const std::string detail =
      fmt::format("{:.1f} GiB, {:.1f} GiB available", total / kGiB, free / kGiB);
  if (free >= kGiB) return {Verdict::ok, "memory", detail};
  return {Verdict::warn, "memory", detail, "a worker takes about 0.3 GiB besides its data"};
}

/// Workers share memory by handing it to each other through the store: a child takes ours.
bool child_can_take(const os::SharedMemory& memory) {
  const auto soon = [] { return Deadline::in_seconds(10); };
  cluster::StoreServer server(cluster::Pass::draw());
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      cluster::SocketStore store(server.endpoint(), server.pass(), soon(), {});
      store.take("memory", os::SharedMemory::Pages::on_use, soon());
      ::_exit(0);
    } catch (const std::exception&) {
      ::_exit(1);
    }
  }
  server.start();
  cluster::SocketStore(server.endpoint(), server.pass(), soon(), {}).give("memory", memory, 1);
  int status = 1;
  return child > 0 && ::waitpid(child, &status, 0) == child && status == 0;
}

/// Made as a training makes it, and handed to another process as a worker gets it.
Finding check_shared_memory() {
  constexpr std::size_t kBytes = 64 << 20;
  const std::string advice = "train with --engine gloo";
  try {
    const os::SharedMemory memory = os::SharedMemory::create(kBytes);
    if (child_can_take(memory)) {
      return {Verdict::ok, "shared memory", "memfd of 64 MiB made and handed to a second process"};
    }
    return {Verdict::warn, "shared memory", "a second process cannot be handed any", advice};
  } catch (const Error& error) {
    return {Verdict::warn, "shared memory", error.what(), advice};
  }
}

/// Its version, for reports of problems. That it could be loaded is known by now.
Finding check_torch() {
  return {Verdict::ok, "LibTorch", TORCH_VERSION};
}

/// The CPU, and what the libraries that LibTorch brings compute with on it.
Finding check_kernels() {
  const auto chosen = kernel::chosen_threads([](const char* name) { return std::getenv(name); });
  const kernel::KernelReport report = kernel::kernel_report(chosen.value_or(os::usable_cores()));
  const std::string detail = fmt::format("{}: {}", report.cpu.name, kernel::one_line(report));
  if (report.slow.empty()) return {Verdict::ok, "kernels", detail};
  return {Verdict::warn, "kernels", detail, report.slow.front().advice};
}

/// Torch's own loops, by the line that it writes about them. AVX2 on a CPU with AVX-512 is its own
/// choice and mostly the faster one.
Finding check_torch_loops() {
  const std::string text = at::show_config();
  const std::string key = "CPU capability usage: ";
  const auto start = text.find(key);
  if (start == std::string::npos) return {Verdict::ok, "torch loops", "unknown"};
  const auto begin = start + key.size();
  const std::string used = text.substr(begin, text.find('\n', begin) - begin);
  const auto vectors = kernel::this_cpu().vectors;
  if (used.find("AVX") == 0 || !vectors || *vectors < kernel::Vectors::avx2) {
    return {Verdict::ok, "torch loops", used};
  }
  return {Verdict::warn, "torch loops",
          fmt::format("{}, but this CPU has {}", used, kernel::name_of(*vectors)),
          std::getenv("ATEN_CPU_CAPABILITY") == nullptr ? "install a LibTorch that has them"
                                                        : "unset ATEN_CPU_CAPABILITY"};
}

/// Which BLAS this process has loaded: it multiplies the matrices of every layer.
Finding check_blas() {
  const BlasLibrary blas = blas_library(text_of("/proc/self/maps"));
  if (blas.file.empty()) return {Verdict::ok, "BLAS", "inside LibTorch"};
  const std::string detail = fmt::format("{} ({})", blas.name, blas.file);
  if (blas.fast) return {Verdict::ok, "BLAS", detail};
  return {Verdict::warn, "BLAS", detail,
          "training is many times slower with it: apt-get install libopenblas0-pthread"};
}

/// Variables by which users choose threads; Cohort leaves them as they are.
Finding check_threads() {
  std::string set;
  for (const char* name : {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"}) {
    const char* value = std::getenv(name);
    if (value != nullptr) set += fmt::format("{}{}={}", set.empty() ? "" : ", ", name, value);
  }
  if (set.empty()) {
    return {Verdict::ok, "threads", "cores divided by the workers, fewer for small models"};
  }
  return {Verdict::ok, "threads", set + " (yours, so left alone)"};
}

/// Whether fresh memory comes in pages of 2 MiB, for all or for those who ask.
Finding check_huge_pages() {
  const std::string folder = "/sys/kernel/mm/transparent_hugepage/";
  const std::string mode = bracketed(text_of(folder + "enabled"));
  const std::string detail = mode.empty() ? "not in this kernel" : mode;
  if (mode == "always" || mode == "madvise") return {Verdict::ok, "huge pages", detail};
  return {Verdict::warn, "huge pages", detail,
          "fresh memory is slower without: echo madvise > " + folder + "enabled"};
}

/// Gloo is linked in; what can be missing is a loopback to talk over.
Finding check_gloo() {
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in loopback{};
  loopback.sin_family = AF_INET;
  loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto* address = reinterpret_cast<const sockaddr*>(&loopback);
  if (fd && ::bind(fd.get(), address, sizeof loopback) == 0 && ::listen(fd.get(), 1) == 0) {
    return {Verdict::ok, "Gloo", "built in; loopback can be listened on"};
  }
  return {Verdict::warn, "Gloo", "built in, but no socket of 127.0.0.1 can be listened on",
          "bring the loopback up (ip link set lo up), or train with --engine shm"};
}

/// bbr paces what it sends, which costs on loopback; it is the default of many virtual machines.
Finding check_congestion_control() {
  const std::string name = text_of("/proc/sys/net/ipv4/tcp_congestion_control");
  if (name != "bbr") return {Verdict::ok, "TCP", name.empty() ? "unknown" : name};
  return {Verdict::warn, "TCP", name,
          "slows Gloo within this machine up to 1.6 times: sysctl -w "
          "net.ipv4.tcp_congestion_control=cubic"};
}

/// By these a worker that waits for another one sees at once that it has died (os/peer_watch.h).
Finding check_pidfd() {
  const UniqueFd fd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  if (fd) return {Verdict::ok, "pidfd", "a worker that dies is seen at once"};
  return {Verdict::fatal, "pidfd", "this kernel does not offer it",
          "Cohort watches its workers by it: use Linux 5.3 or later, outside of a sandbox that "
          "forbids it"};
}

/// Whether a debugger can attach to a worker; training does not need it.
Finding check_ptrace() {
  const std::string scope = text_of("/proc/sys/kernel/yama/ptrace_scope");
  if (scope.empty() || scope == "0") return {Verdict::ok, "ptrace", "debuggers can attach"};
  return {Verdict::ok, "ptrace",
          fmt::format("yama scope {}: a debugger attaches only as root; training does not need it",
                      scope)};
}

/// For those who build Cohort; training does not need it.
Finding check_ccache() {
  std::stringstream folders(std::getenv("PATH") == nullptr ? "" : std::getenv("PATH"));
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (::access((folder + "/ccache").c_str(), X_OK) == 0) return {Verdict::ok, "ccache", folder};
  }
  return {Verdict::warn, "ccache", "not installed",
          "building again takes minutes without: apt-get install ccache"};
}

void print(const Finding& finding) {
  const char* word = finding.verdict == Verdict::ok     ? "ok"
                     : finding.verdict == Verdict::warn ? "warn"
                                                        : "FATAL";
  fmt::print("{:<5}  {:<13}  {}\n", word, finding.what, finding.detail);
  if (!finding.advice.empty()) fmt::print("{:<22}-> {}\n", "", finding.advice);
}

/// For the wrapper, which can start this program with them at once: what it would otherwise start
/// itself anew with. The wrapper keeps the answer, so it is that of jobs with several threads.
int print_settings() {
  constexpr int kSeveral = 2;
  const auto settings = kernel::missing_settings(
      kernel::this_machine(), kSeveral, [](const char* name) { return std::getenv(name); });
  for (const std::string& one : kernel::as_variables(settings)) fmt::print("{}\n", one);
  return 0;
}

/// All checks, a line each, and a last line that says what follows from them.
int examine() {
  use_fast_kernels();  // As a training does.
  int warnings = 0, fatal = 0;
  for (const auto check :
       {check_cores, check_memory, check_shared_memory, check_torch, check_torch_loops,
        check_kernels, check_blas, check_threads, check_huge_pages, check_gloo,
        check_congestion_control, check_pidfd, check_ptrace, check_ccache}) {
    const Finding finding = check();
    print(finding);
    if (finding.verdict == Verdict::warn) ++warnings;
    if (finding.verdict == Verdict::fatal) ++fatal;
  }
  if (fatal > 0) {
    fmt::print("Cohort cannot train here.\n");
  } else {
    fmt::print("Cohort can train here{}.\n",
               warnings == 0 ? "" : fmt::format("; {} of the above could be better", warnings));
  }
  return fatal > 0 ? cluster::kExitFailed : 0;
}

}  // namespace

Command doctor_command() {
  const auto settings = std::make_shared<bool>(false);
  const auto configure = [settings](CLI::App& app) {
    app.add_flag("--settings", *settings,
                 "Only print the variables that this program should be started with");
    app.footer(
        "Each line says what was found and, where it is not good, what to do about it.\n"
        "Exit code 0 unless training is impossible here.");
  };
  return {"doctor", "Say whether this machine has what training needs", configure,
          [settings] { return *settings ? print_settings() : examine(); }};
}

}  // namespace cohort::cli
