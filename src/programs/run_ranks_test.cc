// Proves what becomes of a program's ranks: with real processes, most of them /bin/sh. Each run stands
// in a launcher with a guard, as the command's does, below this test.

#include "programs/program_run.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <thread>

#include "base/fail.h"
#include "base/files.h"
#include "cluster/exit_code.h"
#include "os/peer_watch.h"
#include "programs/guard.h"

namespace cohort::programs {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

ProgramRun shell_run(int ranks, const std::string& script) {
  ProgramRun run{.command = {"/bin/sh", "-c", script}, .ranks_per_host = ranks};
  run.patience = {.notice = 200ms, .terminate = 500ms, .save = 60s};
  return complete(run, [](const char*) -> const char* { return nullptr; });
}

/// The process of the command, in the test's hands.
class RunRanks : public ::testing::Test {
 protected:
  ~RunRanks() override {
    if (guard_ != 0) ::kill(guard_, SIGKILL);
    if (guard_ != 0) ::waitpid(guard_, nullptr, 0);
  }

  /// Starts a run whose standard output and error go to files.
  void start(const ProgramRun& run) {
    guard_ = ::fork();
    if (guard_ != 0) return;
    const UniqueFd out = open_to_write(folder_.path() / "out", Existing::append);
    const UniqueFd err = open_to_write(folder_.path() / "err", Existing::append);
    ::dup2(out.get(), STDOUT_FILENO);
    ::dup2(err.get(), STDERR_FILENO);
    int code = cluster::kExitFailed;
    try {
      code = run_guarded([&] {
        try {
          return run_ranks(run);
        } catch (const Error& error) {
          fmt::print(stderr, "{}\n", error.what());
          return cluster::exit_code(error.code());
        }
      });
    } catch (const std::exception& error) {
      fmt::print(stderr, "{}\n", error.what());
    }
    std::fflush(stderr);
    ::_exit(code);
  }

  /// Its exit code.
  int wait() {
    int status = 0;
    ::waitpid(std::exchange(guard_, 0), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  int code_of(int ranks, const std::string& script) {
    start(shell_run(ranks, script));
    return wait();
  }

  std::string out() const { return read_file(folder_.path() / "out"); }
  std::string err() const { return read_file(folder_.path() / "err"); }
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }

  /// The number that somebody writes to a file, once it stands there.
  pid_t pid_in(const std::string& name) const {
    for (;;) {
      pid_t pid = 0;
      std::ifstream file(path(name));
      if (file >> pid && file.get() == '\n') return pid;
      std::this_thread::yield();
    }
  }

  pid_t guard_ = 0;
  TemporaryFolder folder_;
};

/// Whether a process, which may be anybody's, ends.
bool ends(const UniqueFd& process) {
  pollfd ended{process.get(), POLLIN, 0};
  return !process || ::poll(&ended, 1, 120'000) == 1;
}

TEST_F(RunRanks, AreGoodWhereAllAre) {
  EXPECT_EQ(code_of(3, "echo I am $RANK of $WORLD_SIZE"), 0);
  for (const char* line :
       {"[rank 0] I am 0 of 3\n", "[rank 1] I am 1 of 3\n", "[rank 2] I am 2 of 3\n"}) {
    EXPECT_THAT(out(), HasSubstr(line));
  }
  EXPECT_EQ(err(), "");
}

TEST_F(RunRanks, TheExitCodeIsThatOfTheFirstCause) {
  EXPECT_EQ(code_of(3, "test $RANK = 1 && exit 7; exec sleep 600"), 7);
  EXPECT_THAT(err(), HasSubstr("cohort: rank 1 (pid "));
  EXPECT_THAT(err(), HasSubstr(") ended with exit code 7\n"));
}

TEST_F(RunRanks, ASignalIsNamedThoughAPeersEndWasNoticedBefore) {
  EXPECT_EQ(code_of(2, "first=" + path("first") +
                           "; test $RANK = 0 && { echo $$ > $first; exit 138; }; trap '' TERM; "
                           "until [ -s $first ]; do :; done; "
                           "while kill -0 $(cat $first) 2> /dev/null; do :; done; kill -SEGV $$"),
            139);
  EXPECT_THAT(err(), HasSubstr("rank 1 (pid "));
  EXPECT_THAT(err(), HasSubstr("was killed by SIGSEGV"));
}

TEST_F(RunRanks, WhereAllLostAPeerThatIsTheCode) {
  EXPECT_EQ(code_of(2, "exit 138"), cluster::kExitRetry);
  EXPECT_THAT(err(), HasSubstr("ended with exit code 138: it lost a peer"));
}

TEST_F(RunRanks, WhoIgnoresTermIsKilled) {
  EXPECT_EQ(code_of(2, "test $RANK = 1 && exit 3; trap '' TERM; while :; do sleep 600; done"), 3);
}

TEST_F(RunRanks, AFloodOfLinesComesWholeAndOnItsOwnWay) {
  EXPECT_EQ(code_of(3,
                    "i=0; while [ $i -lt 3000 ]; do echo $RANK-$i-abcdefghijklmnopqrstuvwxyz; "
                    "echo $RANK-$i-error >&2; i=$((i+1)); done; printf end-of-$RANK"),
            0);
  std::istringstream lines(out());
  std::vector<int> next(3);
  for (std::string line; std::getline(lines, line);) {
    int rank = -1;
    ASSERT_EQ(std::sscanf(line.c_str(), "[rank %d] ", &rank), 1) << line;
    auto& count = next.at(static_cast<std::size_t>(rank));
    const std::string expected =
        count == 3000 ? fmt::format("[rank {}] end-of-{}", rank, rank)
                      : fmt::format("[rank {0}] {0}-{1}-abcdefghijklmnopqrstuvwxyz", rank, count);
    ASSERT_EQ(line, expected);
    ++count;
  }
  EXPECT_THAT(next, ::testing::Each(3001));
  EXPECT_THAT(out(), ::testing::EndsWith("\n"));
  EXPECT_THAT(err(), HasSubstr("[rank 2] 2-2999-error\n"));
  EXPECT_THAT(err(), Not(HasSubstr("abc")));
}

TEST_F(RunRanks, ALongLineComesWhole) {
  EXPECT_EQ(code_of(2, "head -c 3000000 /dev/zero | tr '\\0' $RANK; echo"), 0);
  EXPECT_THAT(out(), HasSubstr("[rank 0] " + std::string(3'000'000, '0') + "\n"));
  EXPECT_THAT(out(), HasSubstr("[rank 1] " + std::string(3'000'000, '1') + "\n"));
}

TEST_F(RunRanks, RankZeroReadsTheLaunchersInputAndTheOthersNone) {
  const auto input = path("input");
  std::ofstream(input) << "hello\n";
  const UniqueFd before(::dup(STDIN_FILENO));
  const UniqueFd file(::open(input.c_str(), O_RDONLY | O_CLOEXEC));
  ::dup2(file.get(), STDIN_FILENO);
  const int code = code_of(2, "echo got: $(cat)");
  ::dup2(before.get(), STDIN_FILENO);
  EXPECT_EQ(code, 0);
  EXPECT_THAT(out(), HasSubstr("[rank 0] got: hello\n"));
  EXPECT_THAT(out(), HasSubstr("[rank 1] got:\n"));
}

TEST_F(RunRanks, AFailureStartsAllAgainWithANewNumber) {
  ProgramRun run =
      shell_run(2,
                "echo start $TORCHELASTIC_RESTART_COUNT of $TORCHELASTIC_MAX_RESTARTS; "
                "test $TORCHELASTIC_RESTART_COUNT = 2 && exit 0; "
                "test $RANK = 1 && exit 5; exec sleep 600");
  run.max_restarts = 3;
  run.logs = path("logs");
  start(run);
  EXPECT_EQ(wait(), 0);
  for (int rank = 0; rank < 2; ++rank) {
    for (int restart = 0; restart < 3; ++restart) {
      EXPECT_EQ(
          read_file(path(fmt::format("logs/{}/restart-{}/rank-{}.out", run.run_id, restart, rank))),
          fmt::format("start {} of 3\n", restart));
    }
  }
  EXPECT_THAT(err(), HasSubstr("ended with exit code 5; log: "));
  EXPECT_THAT(err(), HasSubstr("all ranks are started again (restart 1 of 3)\n"));
  EXPECT_THAT(err(), HasSubstr("restart-1/rank-1.err, at restart 1; all ranks are started again "
                               "(restart 2 of 3)\n"));
}

TEST_F(RunRanks, WithoutRestartsLeftTheLastCauseIsTheCode) {
  ProgramRun run = shell_run(1, "exit $((10 + TORCHELASTIC_RESTART_COUNT))");
  run.max_restarts = 1;
  start(run);
  EXPECT_EQ(wait(), 11);
  EXPECT_THAT(err(), HasSubstr("ended with exit code 11, at restart 1; no restarts are left\n"));
}

TEST_F(RunRanks, WhatARankLeavesBehindEndsWithTheRun) {
  // In a session of its own, and with the rank's pipes in its hands.
  start(shell_run(1, "setsid sh -c 'echo $$ > " + path("left") + "; exec sleep 600' & " +
                         "while [ ! -s " + path("left") + " ]; do :; done"));
  const UniqueFd left = os::open_pidfd(pid_in("left"));
  EXPECT_EQ(wait(), 0);
  EXPECT_TRUE(ends(left));
}

class KilledLauncher : public RunRanks {
 protected:
  /// A rank and a process that it has started in a session of its own.
  void start_family() {
    start(shell_run(1, "echo $PPID > " + path("launcher") + "; setsid sh -c 'echo $$ > " +
                           path("left") + "; exec sleep 600' & echo $$ > " + path("rank") +
                           "; wait"));
    launcher_ = pid_in("launcher");
    rank_ = os::open_pidfd(pid_in("rank"));
    left_ = os::open_pidfd(pid_in("left"));
  }

  pid_t launcher_ = 0;
  UniqueFd rank_;
  UniqueFd left_;
};

TEST_F(KilledLauncher, LeavesNothingWhereTheGuardIsKilled) {
  start_family();
  ::kill(guard_, SIGKILL);
  EXPECT_EQ(wait(), -SIGKILL);
  EXPECT_TRUE(ends(rank_));
  EXPECT_TRUE(ends(left_));
}

TEST_F(KilledLauncher, LeavesNothingWhereTheLauncherIsKilled) {
  start_family();
  ::kill(launcher_, SIGKILL);
  EXPECT_EQ(wait(), 128 + SIGKILL);
  EXPECT_TRUE(ends(rank_));
  EXPECT_TRUE(ends(left_));
  EXPECT_THAT(err(), HasSubstr("the launcher was killed by SIGKILL"));
}

class Signals : public RunRanks {
 protected:
  /// Two ranks that say, by a file each, that they are ready.
  void start_ready(const std::string& traps) {
    start(shell_run(2, traps + "; echo $$ > " + path("ready-") +
                           "$RANK; while :; do sleep 600 & wait $!; done"));
    pid_in("ready-0");
    pid_in("ready-1");
  }
};

TEST_F(Signals, GoToAllRanksWhichEndInTheirOwnWay) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    start_ready("trap 'echo saved; exit 0' INT TERM HUP");
    ::kill(guard_, signal);
    EXPECT_EQ(wait(), 0);
    EXPECT_THAT(out(), HasSubstr("[rank 0] saved\n"));
    EXPECT_THAT(out(), HasSubstr("[rank 1] saved\n"));
    for (const char* name : {"out", "err", "ready-0", "ready-1"})
      std::filesystem::remove(path(name));
  }
}

TEST_F(Signals, RanksThatDieOfThemAreNoFailureToStartAgain) {
  start_ready(":");
  ::kill(guard_, SIGTERM);
  EXPECT_EQ(wait(), 128 + SIGTERM);
  EXPECT_THAT(err(), HasSubstr("passing SIGTERM on to all ranks"));
  EXPECT_THAT(err(), HasSubstr("stopped by SIGTERM\n"));
}

TEST_F(Signals, ASecondInterruptKills) {
  start_ready("trap 'echo told; echo $$ > " + path("told-") + "$RANK' INT");
  ::kill(guard_, SIGINT);
  pid_in("told-0");
  pid_in("told-1");
  ::kill(guard_, SIGINT);
  EXPECT_EQ(wait(), 128 + SIGKILL);
}

TEST_F(Signals, UserSignalsArePassedOnAndEndNothing) {
  start_ready("trap 'exit 9' USR1; trap 'exit 0' TERM");
  ::kill(guard_, SIGUSR1);
  EXPECT_EQ(wait(), 9);
}

TEST_F(RunRanks, AProgramThatCannotBeStartedIsASentence) {
  const auto script = path("script");
  std::ofstream(script) << "no first line that says what runs it\n";
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  ProgramRun run = shell_run(2, "");
  run.command = {script};
  start(run);
  EXPECT_EQ(wait(), cluster::kExitWrongUse);
  EXPECT_THAT(err(), HasSubstr("it is neither a program of this machine nor a script"));
  std::ofstream(script) << "#!/no/such/interpreter\n";
  start(run);
  EXPECT_EQ(wait(), cluster::kExitWrongUse);
  EXPECT_THAT(err(), HasSubstr("what its first line names by #!"));
}

}  // namespace
}  // namespace cohort::programs
