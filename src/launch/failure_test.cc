#include "launch/failure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

namespace cohort {
namespace {

using ::testing::HasSubstr;

WorkerFailure lost_peer(int rank) {
  return {.rank = rank, .code = ErrorCode::peer_lost, .message = "rank 2 is gone"};
}

TEST(Failure, ADeathOutranksWhatItCausesInOthers) {
  std::vector<WorkerFailure> failures = {
      lost_peer(0), lost_peer(1), {.rank = 2, .signal = SIGKILL}};
  sort_by_cause(failures);
  EXPECT_EQ(failures[0].rank, 2);
  EXPECT_EQ(exit_code(failures[0]), 138);
}

TEST(Failure, AnErrorOfItsOwnOutranksALostPeer) {
  std::vector<WorkerFailure> failures = {
      lost_peer(0), {.rank = 1, .code = ErrorCode::diverged, .message = "the loss is not finite"}};
  sort_by_cause(failures);
  EXPECT_EQ(failures[0].rank, 1);
  EXPECT_EQ(exit_code(failures[0]), 1);
}

TEST(Failure, IsNamedWithRankStepSignalAndLog) {
  const WorkerFailure killed{
      .rank = 3, .pid = 77, .step = 120, .signal = SIGKILL, .log = "logs/worker-3.log"};
  EXPECT_EQ(describe(killed),
            "worker 3 (pid 77, after step 120) was killed by SIGKILL; log: logs/worker-3.log");
  WorkerFailure starved = killed;
  starved.out_of_memory = true;
  EXPECT_THAT(describe(starved), HasSubstr("out of memory"));
  EXPECT_THAT(describe(lost_peer(1)), HasSubstr(": rank 2 is gone"));
}

TEST(Failure, WrongUseIsTwoAndRetryIs138) {
  EXPECT_EQ(exit_code(ErrorCode::invalid), 2);
  EXPECT_EQ(exit_code(ErrorCode::not_found), 2);
  EXPECT_EQ(exit_code(ErrorCode::timeout), 138);
  EXPECT_EQ(exit_code(ErrorCode::no_space), 1);
}

}  // namespace
}  // namespace cohort
