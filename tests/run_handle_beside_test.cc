// What a program has beside a run: other runs, a thread that reads, names that are not UTF-8.

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <set>

#include "run_handle_test_support.h"

namespace cohort {
namespace {

/// The pipes that a process can write to, as the kernel names them.
std::set<std::string> pipes_written_by(const std::string& pid) {
  std::set<std::string> pipes;
  for (const auto& entry : fs::directory_iterator("/proc/" + pid + "/fd")) {
    std::error_code closed;
    const std::string name = fs::read_symlink(entry, closed).string();
    if (closed || !name.starts_with("pipe:")) continue;
    std::ifstream info("/proc/" + pid + "/fdinfo/" + entry.path().filename().string());
    for (std::string word; info >> word;) {
      if (word == "flags:" && info >> word && word.back() != '0') pipes.insert(name);
    }
  }
  return pipes;
}

/// Those that it has not got from this process for ever, as a test's output is.
std::set<std::string> pipes_of(const cohort::Run& run) {
  std::set<std::string> pipes = pipes_written_by(std::to_string(run.launcher()));
  for (const std::string& own : pipes_written_by("self")) pipes.erase(own);
  return pipes;
}

// A pipe of one run that another one had, too, would not end with the first. It takes a moment
// between two lines for that, so they are given several.
TEST_F(RunHandle, RunsThatAreStartedAtOnceEndApart) {
  for (int round = 0; round < 16; ++round) {
    Job endless = round % 2 == 0 ? small_job() : own_job();
    endless.train.steps = 100'000'000;
    std::optional<cohort::Run> ended, other;
    std::atomic<int> ready = 0;
    const auto begin = [&](std::optional<cohort::Run>& run, const std::string& folder) {
      for (++ready; ready < 2;) std::this_thread::yield();
      run.emplace(start(endless, {.run = quietly(folder + std::to_string(round))}));
    };
    std::thread first([&] { begin(ended, "ended-"); });
    std::thread second([&] { begin(other, "other-"); });
    first.join();
    second.join();
    const std::set<std::string> pipes = pipes_of(*ended);
    EXPECT_EQ(pipes.size(), 1U) << "the one by which it tells how it goes";
    for (const std::string& pipe : pipes_of(*other)) EXPECT_FALSE(pipes.contains(pipe)) << pipe;
    ended.reset();
    EXPECT_FALSE(other->poll());
  }
}

// The C library holds the stream for as long as somebody waits for its next line.
TEST_F(RunHandle, AThreadOfTheCallerMayWaitForInput) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const int before = ::dup(STDIN_FILENO);
  ::dup2(ends[0], STDIN_FILENO);
  std::thread reader([] {
    char* line = nullptr;
    std::size_t size = 0;
    EXPECT_EQ(::getline(&line, &size, stdin), 3);
    std::free(line);
  });
  for (; ::ftrylockfile(stdin) == 0; std::this_thread::yield()) ::funlockfile(stdin);
  for (const Job& job : {small_job(), own_job()}) {
    cohort::Run run = start(job, {.run = quietly(job.model.make ? "own" : "plain")});
    EXPECT_EQ(run.wait().status, "completed");
  }
  EXPECT_EQ(::write(ends[1], "go\n", 3), 3);
  reader.join();
  ::dup2(before, STDIN_FILENO);
  for (const int end : {before, ends[0], ends[1]}) ::close(end);
}

TEST_F(RunHandle, NamesNeedNotBeUtf8) {
  Job job = small_job();
  job.checkpoint.every_steps = kSteps;
  const RunOptions options = quietly("caf\xe9");
  cohort::Run run = start(job, {.run = options, .environment = {{"NO_UTF8", "\xff"}}});
  EXPECT_EQ(run.wait().status, "completed");
  EXPECT_EQ(run.run_dir(), options.run_dir);
  EXPECT_TRUE(fs::exists(fs::path(options.run_dir) / "model.safetensors"));
  job.train.steps = kSteps + 2;
  RunOptions more = quietly("more");
  more.resume = options.run_dir;
  EXPECT_EQ(start(job, {.run = more}).wait().steps, kSteps + 2);
}

}  // namespace
}  // namespace cohort
