#include "programs/program_run.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <sstream>

#include "base/fail.h"
#include "cluster/launch_environment.h"
#include "cluster/secret.h"
#include "programs/rank_variables.h"

namespace cohort::programs {
namespace {

constexpr int kMostRanksOfHost = 4096;
constexpr int kMostHosts = 256;
constexpr std::size_t kLongestRunId = 100;

void check_number(const char* name, int value, int smallest, int largest) {
  if (value >= smallest && value <= largest) return;
  fail(ErrorCode::invalid, "{} {} is not a number from {} to {}", name, value, smallest, largest);
}

void check_numbers(const ProgramRun& run) {
  check_number("--nproc-per-node", run.ranks_per_host, 1, kMostRanksOfHost);
  check_number("--nnodes", run.hosts, 1, kMostHosts);
  check_number("--node-rank", run.host, 0, run.hosts - 1);
  check_number("--master-port", run.master_port, 0, 65535);
  check_number("--max-restarts", run.max_restarts, 0, 1'000'000);
}

/// It is a part of names of files.
void check_run_id(const std::string& id) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-_.:").find(c) != std::string_view::npos;
  };
  if (id.size() > kLongestRunId || !std::ranges::all_of(id, fits) || id.starts_with('.')) {
    fail(ErrorCode::invalid,
         "--run-id {} is no name of a run: up to {} letters, digits and - _ : and, but for the "
         "first, dots",
         excerpt(id), kLongestRunId);
  }
}

void check_meeting_point(const ProgramRun& run) {
  if (run.hosts == 1 || (!run.master_address.empty() && run.master_port != 0)) return;
  fail(ErrorCode::invalid,
       "with --nnodes {} the ranks of all hosts must know where to meet: give each host the same "
       "--master-addr, the host of rank 0, and the same --master-port, a free port of it",
       run.hosts);
}

std::string drawn_id() {
  std::array<std::byte, 8> bytes{};
  cluster::draw_bytes(bytes);
  std::string id;
  for (const std::byte byte : bytes) id += fmt::format("{:02x}", static_cast<int>(byte));
  return id;
}

/// What each rank would find out, too, but only after all were started: that it may talk to others.
void check_as_rank(const ProgramRun& run, const os::GetVariable& get) {
  constexpr int kAnyPort = 1;
  std::map<std::string, std::string> variables;
  const int port = run.master_port == 0 ? kAnyPort : run.master_port;
  for (const std::string& entry : place_variables(run, {.port = port})) {
    const auto equals = entry.find('=');
    variables[entry.substr(0, equals)] =
        equals == std::string::npos ? "" : entry.substr(equals + 1);
  }
  const auto place = cluster::launch_environment([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? get(name) : found->second.c_str();
  });
  cluster::check_trust(*place);
  if (!place->secret_file.empty()) cluster::Secret::from_file(place->secret_file);
}

bool is_file(const std::string& path) {
  std::error_code problem;
  return std::filesystem::is_regular_file(path, problem);
}

bool can_execute(const std::string& path) {
  return is_file(path) && ::access(path.c_str(), X_OK) == 0;
}

[[noreturn]] void fail_cannot_execute(const std::string& path) {
  std::error_code problem;
  if (std::filesystem::is_directory(path, problem)) {
    fail(ErrorCode::invalid, "{} is a folder, not a program", excerpt(path));
  }
  if (!is_file(path)) fail(ErrorCode::not_found, "there is no program {}", excerpt(path));
  fail(ErrorCode::invalid,
       "{} is not executable: make it so by chmod +x, or name what runs it first", excerpt(path));
}

}  // namespace

std::string find_program(const std::string& name, const os::GetVariable& get) {
  if (name.empty()) fail(ErrorCode::invalid, "the program to run has an empty name");
  if (name.find('/') != std::string::npos) {
    if (!can_execute(name)) fail_cannot_execute(name);
    return name;
  }
  const char* path = get("PATH");
  std::istringstream folders(path == nullptr ? "/bin:/usr/bin" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    // An empty one is this folder.
    const std::string file = folder.empty() ? "./" + name : folder + "/" + name;
    if (can_execute(file)) return file;
  }
  const std::string hint =
      is_file(name) ? fmt::format("; the file here is ./{}", excerpt(name)) : "";
  fail(ErrorCode::not_found, "there is no program {} on PATH{}", excerpt(name), hint);
}

ProgramRun complete(ProgramRun run, const os::GetVariable& get) {
  if (run.command.empty()) {
    fail(ErrorCode::invalid, "run needs a program, as in: cohort run -n 4 ./program --its-option");
  }
  check_numbers(run);
  check_run_id(run.run_id);
  check_meeting_point(run);
  if (run.run_id.empty()) {
    run.run_id = run.hosts == 1 ? drawn_id() : fmt::format("port-{}", run.master_port);
  }
  if (run.master_address.empty()) run.master_address = "127.0.0.1";
  check_as_rank(run, get);
  find_program(run.command.front(), get);
  return run;
}

}  // namespace cohort::programs
