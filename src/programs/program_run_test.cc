// Proves what is refused before anything is started, what is filled in, and what ranks are told of
// their places.

#include "programs/program_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "base/fail.h"
#include "base/files.h"
#include "programs/rank_variables.h"

namespace cohort::programs {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::StartsWith;

os::GetVariable variables(std::map<std::string, std::string> given) {
  return [given = std::move(given)](const char* name) -> const char* {
    const auto found = given.find(name);
    return found == given.end() ? nullptr : found->second.c_str();
  };
}

const ProgramRun kOneHost{.command = {"/bin/sh"}, .ranks_per_host = 2};
const ProgramRun kTwoHosts{.command = {"/bin/sh"},
                           .ranks_per_host = 2,
                           .hosts = 2,
                           .host = 1,
                           .master_address = "10.1.2.3",
                           .master_port = 29500,
                           .insecure = true};

std::string refusal(const ProgramRun& run, const os::GetVariable& get = variables({})) {
  try {
    complete(run, get);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ProgramRun, OnOneHostHasANameThatNobodyElseHas) {
  const ProgramRun run = complete(kOneHost, variables({}));
  EXPECT_EQ(run.run_id.size(), 16U);
  EXPECT_NE(run.run_id, complete(kOneHost, variables({})).run_id);
  EXPECT_EQ(run.master_address, "127.0.0.1");
}

TEST(ProgramRun, OfSeveralHostsNeedsAMeetingPointAndASecret) {
  ProgramRun run = kTwoHosts;
  run.master_address.clear();
  EXPECT_THAT(refusal(run), HasSubstr("give each host the same --master-addr"));
  run = kTwoHosts;
  run.master_port = 0;
  EXPECT_THAT(refusal(run), HasSubstr("the same --master-port"));
  EXPECT_THAT(refusal(kTwoHosts), HasSubstr("COHORT_SECRET_FILE"));
  run = kTwoHosts;
  run.insecure = false;
  EXPECT_THAT(refusal(run), HasSubstr("--insecure or COHORT_INSECURE=1"));
  EXPECT_THAT(refusal(kTwoHosts, variables({{"COHORT_SECRET_FILE", "/no/such/file"}})),
              HasSubstr("/no/such/file"));
  run.master_address = "127.0.0.1";
  EXPECT_EQ(refusal(run), "") << "no other host can be meant";
  EXPECT_EQ(complete(run, variables({})).run_id, "port-29500");
}

TEST(ProgramRun, NumbersThatMakeNoSenseAreRefused) {
  const auto with = [](auto change) {
    ProgramRun run = kOneHost;
    change(run);
    return refusal(run);
  };
  EXPECT_THAT(with([](auto& run) { run.ranks_per_host = 0; }), HasSubstr("--nproc-per-node 0"));
  EXPECT_THAT(with([](auto& run) { run.hosts = -1; }), HasSubstr("--nnodes -1"));
  EXPECT_THAT(with([](auto& run) { run.host = 1; }), HasSubstr("--node-rank 1"));
  EXPECT_THAT(with([](auto& run) { run.master_port = 70000; }), HasSubstr("--master-port 70000"));
  EXPECT_THAT(with([](auto& run) { run.max_restarts = -1; }), HasSubstr("--max-restarts -1"));
  EXPECT_THAT(with([](auto& run) { run.run_id = "../x"; }), HasSubstr("--run-id ../x"));
  EXPECT_THAT(with([](auto& run) { run.command.clear(); }), HasSubstr("run needs a program"));
}

TEST(FindProgram, LooksWhereTheSystemLooks) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "tool").string();
  const auto get = variables({{"PATH", "/nowhere:" + folder.path().string()}});
  EXPECT_THROW(find_program("tool", get), Error);
  std::ofstream(file) << "#!/bin/sh\n";
  EXPECT_THROW(find_program("tool", get), Error) << "not executable";
  try {
    find_program(file, get);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("is not executable: make it so by chmod +x"));
  }
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  EXPECT_EQ(find_program("tool", get), file);
  EXPECT_EQ(find_program(file, variables({})), file);
  EXPECT_THROW(find_program(folder.path().string(), get), Error) << "a folder";
}

TEST(RankVariables, AreThoseOfTorchrun) {
  const ProgramRun run = kTwoHosts;
  const auto all = place_variables(run, {.local_rank = 1, .restart = 4, .port = 29500});
  EXPECT_THAT(all, IsSupersetOf({"RANK=3", "WORLD_SIZE=4", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2",
                                 "GROUP_RANK=1", "GROUP_WORLD_SIZE=2", "ROLE_RANK=3",
                                 "ROLE_WORLD_SIZE=4", "ROLE_NAME=default", "MASTER_ADDR=10.1.2.3",
                                 "MASTER_PORT=29500", "TORCHELASTIC_RESTART_COUNT=4",
                                 "TORCHELASTIC_MAX_RESTARTS=0", "TORCHELASTIC_RUN_ID="}));
  EXPECT_THAT(all, IsSupersetOf({"TORCHELASTIC_USE_AGENT_STORE", "COHORT_ADDRESS"})) << "taken out";
}

TEST(RankVariables, OfThreadsLeaveTheUsersAlone) {
  EXPECT_THAT(compute_variables(3, variables({})),
              IsSupersetOf({"OMP_NUM_THREADS=3", "OPENBLAS_NUM_THREADS=3"}));
  EXPECT_THAT(compute_variables(3, variables({{"OMP_NUM_THREADS", "1"}})),
              Not(Contains(::testing::ContainsRegex("_NUM_THREADS"))));
  const auto blas = compute_variables(3, variables({{"OPENBLAS_NUM_THREADS", "1"}}));
  EXPECT_THAT(blas, Contains("OMP_NUM_THREADS=3"));
  EXPECT_THAT(blas, Not(Contains(StartsWith("OPENBLAS_NUM_THREADS"))));
}

TEST(RankVariables, HaveTheKernelSettingsUnlessTheUserForbidsThem) {
  EXPECT_THAT(compute_variables(3, variables({})), Contains("OMP_WAIT_POLICY=PASSIVE"));
  EXPECT_THAT(compute_variables(3, variables({{"COHORT_KERNELS", "off"}})),
              Not(Contains("OMP_WAIT_POLICY=PASSIVE")));
  EXPECT_THAT(compute_variables(3, variables({{"OMP_WAIT_POLICY", "ACTIVE"}})),
              Not(Contains(StartsWith("OMP_WAIT_POLICY"))));
}

}  // namespace
}  // namespace cohort::programs
