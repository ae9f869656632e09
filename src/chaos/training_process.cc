#include "chaos/training_process.h"

#include <sys/wait.h>
#include <unistd.h>

namespace cohort {
namespace {

constexpr const char* kThisProgram = "/proc/self/exe";
constexpr int kCannotRun = 127;

}  // namespace

TrainingProcess::TrainingProcess(const std::vector<std::string>& words,
                                 const std::filesystem::path& log) {
  // A child of a program with threads must not allocate before exec.
  std::vector<std::string> all = {"cohort", "train"};
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> pointers;
  for (std::string& word : all) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  process_.start(
      [&] {
        ::execv(kThisProgram, pointers.data());
        return kCannotRun;
      },
      log);
}

std::optional<int> TrainingProcess::exit_code() {
  for (const ChildProcesses::End& end : process_.reap()) {
    exit_code_ = WIFSIGNALED(end.status) ? 128 + WTERMSIG(end.status) : WEXITSTATUS(end.status);
  }
  return exit_code_;
}

}  // namespace cohort
