// Runs as handles, in a program like a user's: main begins with use_fast_kernels(), there are
// threads, they compute, and runs are started from any of them.

#include <cohort/cohort.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "run_handle_test_support.h"

namespace cohort {
namespace {

using testing::HasSubstr;

/// A process that has ended and that nobody has asked about yet is gone.
bool is_there(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  const auto end = text.rfind(") ");
  return end != std::string::npos && text[end + 2] != 'Z' && text[end + 2] != 'X';
}

std::vector<int> own_cores() {
  cpu_set_t set;
  ::sched_getaffinity(0, sizeof set, &set);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

std::string cores_of(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  const std::string name = "Cpus_allowed_list:\t";
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name)) return line.substr(name.size());
  }
  return "";
}

TEST_F(RunHandle, TellsEveryLoggedStepOnceInTheCallersProcess) {
  std::vector<std::int64_t> steps;
  const pid_t own = ::getpid();
  const auto caller = std::this_thread::get_id();
  cohort::Run run =
      start(small_job(), {.run = quietly("run"), .on_step = [&](const StepReport& report) {
                            EXPECT_EQ(::getpid(), own);
                            EXPECT_EQ(std::this_thread::get_id(), caller);
                            EXPECT_TRUE(std::isfinite(report.loss));
                            steps.push_back(report.step);
                          }});
  const Summary summary = run.wait();
  EXPECT_EQ(summary.status, "completed");
  EXPECT_EQ(summary.steps, kSteps);
  EXPECT_EQ(summary.exit_code, 0);
  ASSERT_EQ(steps.size(), kSteps);
  for (std::int64_t step = 1; step <= kSteps; ++step) {
    EXPECT_EQ(steps[static_cast<std::size_t>(step - 1)], step);
  }
  EXPECT_EQ(summary.tasks.size(), 2U);
  for (const TaskSummary& task : summary.tasks) EXPECT_NE(task.pid, own);
  EXPECT_NE(run.launcher(), own);
  EXPECT_TRUE(fs::exists(fs::path(run.run_dir()) / "model.safetensors"));
}

TEST_F(RunHandle, SeveralGoOnAtOnceEachOnItsOwnCores) {
  const std::vector<int> cores = own_cores();
  if (cores.size() < 2) GTEST_SKIP() << "one core";
  std::atomic<std::int64_t> steps[2] = {0, 0};
  std::vector<cohort::Run> runs;
  for (int i = 0; i < 2; ++i) {
    Job job = long_job();
    job.cluster.workers = 1;
    runs.push_back(start(job, {.run = quietly(std::to_string(i)),
                               .cores = {cores[static_cast<std::size_t>(i)]},
                               .on_step = [&, i](const StepReport&) { ++steps[i]; }}));
  }
  for (int i = 0; i < 2; ++i) wait_for_a_step(runs[static_cast<std::size_t>(i)], steps[i]);
  for (int i = 0; i < 2; ++i) {
    const auto pids = pids_of(runs[static_cast<std::size_t>(i)].run_dir());
    ASSERT_EQ(pids.size(), 2U);
    for (const pid_t pid : pids) {
      EXPECT_EQ(cores_of(pid), std::to_string(cores[static_cast<std::size_t>(i)]));
    }
  }
  for (cohort::Run& run : runs) run.stop();
  for (cohort::Run& run : runs) EXPECT_EQ(run.wait().status, "interrupted");
}

// What a fork would do to a process whose threads compute: they and it would wait for each other.
TEST_F(RunHandle, TheCallersThreadsMayCompute) {
  torch::set_num_threads(2);
  std::atomic<bool> stop = false;
  std::atomic<std::int64_t> products[2] = {0, 0};
  std::vector<std::thread> threads;
  for (auto& count : products) {
    threads.emplace_back([&stop, &count] {
      torch::set_num_threads(2);
      const auto matrix = torch::randn({600, 600}, torch::requires_grad());
      for (; !stop; ++count) torch::mm(matrix, matrix).sum().backward();
    });
  }
  while (products[0] < 3 || products[1] < 3) std::this_thread::yield();
  for (int i = 0; i < 3; ++i) {
    cohort::Run run = start(small_job(), {.run = quietly(std::to_string(i))});
    const Summary summary = run.wait();
    EXPECT_EQ(summary.status, "completed") << testing::PrintToString(summary.failures);
  }
  const std::int64_t before[2] = {products[0], products[1]};
  while (products[0] <= before[0] || products[1] <= before[1]) std::this_thread::yield();
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

TEST_F(RunHandle, OutlivesTheThreadThatStartedIt) {
  std::optional<cohort::Run> run;
  std::thread([&] { run.emplace(start(small_job(), {.run = quietly("run")})); }).join();
  const Summary summary = run->wait();
  EXPECT_EQ(summary.status, "completed") << testing::PrintToString(summary.failures);
}

TEST_F(RunHandle, AJobMayHaveFunctionsOfTheProgram) {
  std::optional<cohort::Run> run;
  std::thread([&] { run.emplace(start(own_job(), {.run = quietly("run")})); }).join();
  const Summary summary = run->wait();
  EXPECT_EQ(summary.status, "completed") << testing::PrintToString(summary.failures);
}

TEST_F(RunHandle, StopSavesAndEnds) {
  std::atomic<std::int64_t> steps = 0;
  cohort::Run run = start(
      long_job(),
      {.run = quietly("run"), .on_step = [&](const StepReport& report) { steps = report.step; }});
  wait_for_a_step(run, steps);
  run.stop();
  const Summary summary = run.wait();
  EXPECT_EQ(summary.status, "interrupted");
  EXPECT_GE(summary.steps, steps);
  EXPECT_TRUE(fs::exists(fs::path(run.run_dir()) / "model.safetensors"));
  EXPECT_EQ(steps, summary.steps) << "all that was logged is told before wait() returns";
}

// However early it comes: the launcher may not even have read the data.
TEST_F(RunHandle, AStopAtOnceIsNoFailure) {
  for (const int stops : {1, 2, 3}) {
    cohort::Run run = start(long_job(), {.run = quietly(std::to_string(stops))});
    for (int i = 0; i < stops; ++i) run.stop();
    const Summary summary = run.wait();
    EXPECT_EQ(summary.status, "interrupted");
    EXPECT_EQ(summary.exit_code, 128 + SIGINT);
  }
}

TEST_F(RunHandle, AResumedRunTellsOnlyItsOwnSteps) {
  Job job = small_job();
  job.train.steps = 10;
  job.checkpoint.every_steps = 5;
  start(job, {.run = quietly("run")}).wait();
  // Steps that the next run makes again.
  fs::remove_all(folder_.path() / "run" / "checkpoints" / "step-0000000010");
  job.train.steps = 14;
  RunOptions again = quietly("run");
  again.resume = "auto";
  std::vector<std::int64_t> steps;
  start(job, {.run = again, .on_step = [&](const StepReport& step) { steps.push_back(step.step); }})
      .wait();
  EXPECT_THAT(steps, testing::ElementsAre(6, 7, 8, 9, 10, 11, 12, 13, 14));
}

std::atomic<int> own_signals = 0;

TEST_F(RunHandle, LeavesTheCallersSignalsAndEnvironmentAlone) {
  struct sigaction own {};
  struct sigaction before {};
  own.sa_handler = [](int) { ++own_signals; };
  ::sigaction(SIGTERM, &own, &before);
  ::setenv("RANK", "7", 1);
  ::setenv("WORLD_SIZE", "3", 1);  // Nonsense, if it were read.
  std::atomic<std::int64_t> steps = 0;
  cohort::Run run = start(small_job(), {.run = quietly("run"), .on_step = [&](const StepReport&) {
                                          if (++steps == 1) ::raise(SIGTERM);
                                        }});
  const Summary summary = run.wait();
  EXPECT_EQ(summary.status, "completed");
  EXPECT_EQ(own_signals, 1);
  EXPECT_THROW(train(small_job(), quietly("other")), Error) << "train() takes the environment";
  EXPECT_EQ(launch_variables().at("RANK"), "7");
  ::unsetenv("RANK");
  ::unsetenv("WORLD_SIZE");
  ::sigaction(SIGTERM, &before, nullptr);
}

TEST_F(RunHandle, TrainLeavesTheThreadSettingsAsTheyWere) {
  torch::set_num_threads(2);
  const Summary summary = train(small_job(), quietly("run"));
  EXPECT_EQ(summary.status, "completed");
  EXPECT_EQ(torch::get_num_threads(), 2);
}

TEST_F(RunHandle, AWrongJobIsRefusedAtOnceAndWrongDataByWait) {
  Job wrong = small_job();
  wrong.train.batch = 0;
  EXPECT_THROW(start(wrong, {.run = quietly("wrong")}), Error);
  Job no_data = small_job();
  no_data.data = {};
  no_data.data.kind = "csv";
  no_data.data.path = (folder_.path() / "nothing.csv").string();
  cohort::Run run = start(no_data, {.run = quietly("no-data")});
  try {
    run.wait();
    FAIL() << "there is no such file";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_found);
    EXPECT_THAT(error.what(), HasSubstr("nothing.csv"));
  }
}

TEST_F(RunHandle, EndsWithTheHandle) {
  std::vector<pid_t> pids;
  {
    std::atomic<std::int64_t> steps = 0;
    cohort::Run run =
        start(long_job(), {.run = quietly("run"), .on_step = [&](const StepReport&) { ++steps; }});
    wait_for_a_step(run, steps);
    pids = pids_of(run.run_dir());
    ASSERT_EQ(pids.size(), 3U);
  }
  for (const pid_t pid : pids) {
    while (is_there(pid)) std::this_thread::yield();
  }
}

TEST_F(RunHandle, SaysWhoKilledItsLauncher) {
  std::atomic<std::int64_t> steps = 0;
  cohort::Run run =
      start(long_job(), {.run = quietly("run"), .on_step = [&](const StepReport&) { ++steps; }});
  wait_for_a_step(run, steps);
  ::kill(static_cast<pid_t>(run.launcher()), SIGKILL);
  try {
    run.wait();
    FAIL() << "nobody is left to train";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("ended by signal 9"));
  }
}

// The caller is another copy of this program, in which `main` runs a job for ever.
TEST_F(RunHandle, EndsWithTheCallersProcess) {
  const std::string run_dir = (folder_.path() / "run").string();
  for (const char* own_functions : {"", "1"}) {
    const std::string run_variable = "COHORT_TEST_RUN=" + run_dir + own_functions;
    const std::string own_variable = std::string("COHORT_TEST_OWN=") + own_functions;
    std::vector<char*> variables;
    for (char** variable = environ; *variable != nullptr; ++variable) {
      variables.push_back(*variable);
    }
    variables.push_back(const_cast<char*>(run_variable.c_str()));
    variables.push_back(const_cast<char*>(own_variable.c_str()));
    variables.push_back(nullptr);
    std::string name = "run_handle_test";
    char* const words[] = {name.data(), nullptr};
    pid_t caller = 0;
    ASSERT_EQ(::posix_spawn(&caller, "/proc/self/exe", nullptr, nullptr, words, variables.data()),
              0);
    const fs::path metrics = fs::path(run_dir + own_functions) / "metrics.jsonl";
    while (!fs::exists(metrics) || fs::file_size(metrics) == 0) {
      ASSERT_EQ(::waitpid(caller, nullptr, WNOHANG), 0) << "it ended by itself";
      std::this_thread::yield();
    }
    const auto pids = pids_of(run_dir + own_functions);
    ASSERT_EQ(pids.size(), 3U);
    ::kill(caller, SIGKILL);
    ::waitpid(caller, nullptr, 0);
    for (const pid_t pid : pids) {
      while (is_there(pid)) std::this_thread::yield();
    }
  }
}

/// The caller that EndsWithTheCallersProcess kills.
[[noreturn]] void run_for_ever(const char* run_dir) {
  const bool own_functions = std::string(std::getenv("COHORT_TEST_OWN")) == "1";
  Job job = own_functions ? own_job() : small_job();
  job.train.steps = 100'000'000;
  start(job, {.run = {.run_dir = run_dir, .quiet = true}}).wait();
  std::exit(1);
}

}  // namespace
}  // namespace cohort

int main(int argc, char** argv) {
  cohort::use_fast_kernels();
  if (const char* run_dir = std::getenv("COHORT_TEST_RUN")) cohort::run_for_ever(run_dir);
  ::testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
