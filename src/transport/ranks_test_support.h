#pragma once

#include <cohort/error.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "transport/transport.h"

namespace cohort::transport {

/// Ranks for tests: threads of this process, or processes forked from it, that run the same body
/// and meet in a Meeting. What a rank throws or expects in vain fails the test, wherever it runs.

/// A deadline that only what hangs meets.
inline Deadline soon() {
  return Deadline::in_seconds(120);
}

/// What the ranks of a group need to find each other. Made before they start.
class Meeting {
 public:
  virtual ~Meeting() = default;

  /// Called in the process that made it, once all ranks run. `pids` is empty where they are
  /// threads.
  virtual void begin(const std::vector<pid_t>& pids) = 0;

  /// Called by each rank.
  virtual std::unique_ptr<Transport> connect(int rank) = 0;
};

/// What one rank of a test does.
using RankBody = std::function<void(Transport&)>;

inline void run_rank(Meeting& meeting, int rank, const RankBody& body) {
  try {
    const auto transport = meeting.connect(rank);
    body(*transport);
  } catch (const std::exception& error) {
    ADD_FAILURE() << "rank " << rank << ": " << error.what();
  }
}

inline void run_threads(Meeting& meeting, int size, const RankBody& body) {
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] { run_rank(meeting, rank, body); });
  }
  meeting.begin({});
}

[[noreturn]] inline void be_rank(Meeting& meeting, int rank, const RankBody& body) {
  ::alarm(240);  // A rank that hangs fails its test instead of stopping all.
  run_rank(meeting, rank, body);
  std::fflush(nullptr);
  ::_exit(::testing::Test::HasFailure() ? 1 : 0);
}

/// Runs each rank in a process of its own. The `victims` may die or freeze; they are killed once
/// the others have ended.
inline void run_processes(Meeting& meeting, int size, const RankBody& body,
                          const std::set<int>& victims = {}) {
  std::fflush(nullptr);
  std::vector<pid_t> pids;
  for (int rank = 0; rank < size; ++rank) {
    const pid_t pid = ::fork();
    if (pid == 0) be_rank(meeting, rank, body);
    pids.push_back(pid);
  }
  meeting.begin(pids);
  for (int rank = 0; rank < size; ++rank) {
    if (victims.contains(rank)) continue;
    int status = -1;
    ::waitpid(pids[static_cast<std::size_t>(rank)], &status, 0);
    EXPECT_EQ(status, 0) << "rank " << rank << " failed; its own report is above";
  }
  for (const int rank : victims) {
    ::kill(pids[static_cast<std::size_t>(rank)], SIGKILL);
    ::waitpid(pids[static_cast<std::size_t>(rank)], nullptr, 0);
  }
}

/// A way to run a group; the conformance suite runs on each.
struct TestGroup {
  std::string name;
  std::function<std::unique_ptr<Meeting>(int size)> meet;
  bool processes = false;

  void run(int size, const RankBody& body) const {
    const auto meeting = meet(size);
    processes ? run_processes(*meeting, size, body) : run_threads(*meeting, size, body);
  }
};

}  // namespace cohort::transport
