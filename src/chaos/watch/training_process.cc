#include "chaos/watch/training_process.h"

#include <sys/wait.h>
#include <unistd.h>

namespace cohort::chaos {
namespace {

constexpr const char* kThisProgram = "/proc/self/exe";
constexpr int kCannotRun = 127;

}  // namespace

TrainingProcess::TrainingProcess(const std::vector<std::string>& words,
                                 const std::filesystem::path& log,
                                 const std::vector<std::string>& environment) {
  // A child of a program with threads must not allocate before exec.
  std::vector<std::string> all = {"cohort", "train"};
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> pointers;
  for (std::string& word : all) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  std::vector<std::string> more = environment;
  std::vector<char*> variables;
  for (std::string& variable : more) variables.push_back(variable.data());
  for (char** variable = ::environ; *variable != nullptr; ++variable) {
    variables.push_back(*variable);
  }
  variables.push_back(nullptr);
  process_.start(
      [&] {
        ::execve(kThisProgram, pointers.data(), variables.data());
        return kCannotRun;
      },
      log);
}

std::optional<int> TrainingProcess::exit_code() {
  for (const os::ChildProcesses::End& end : process_.reap()) {
    exit_code_ = WIFSIGNALED(end.status) ? 128 + WTERMSIG(end.status) : WEXITSTATUS(end.status);
  }
  return exit_code_;
}

}  // namespace cohort::chaos
