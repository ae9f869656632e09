// Proves what is read from environments of a test's own, and that each mistake in one is named.

#include "cluster/launch_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/fail.h"

namespace cohort::cluster {
namespace {

using Variables = std::map<std::string, std::string>;

std::optional<LaunchEnvironment> read(const Variables& variables) {
  return launch_environment([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

std::string complaint(const Variables& variables) {
  try {
    read(variables);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid);
    return error.what();
  }
  return "no complaint";
}

const Variables kByHand = {
    {"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "29501"}};

Variables by_hand_but(const std::string& name, const std::string& value) {
  Variables changed = kByHand;
  changed[name] = value;
  return changed;
}

TEST(LaunchEnvironment, IsNothingWhereNobodySetIt) {
  EXPECT_FALSE(read({}));
  EXPECT_FALSE(read({{"MASTER_ADDR", "elsewhere"}}));
}

TEST(LaunchEnvironment, ReadsWhatAUserSetsByHand) {
  const auto place = read(kByHand);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->rank, 1);
  EXPECT_EQ(place->world, 2);
  EXPECT_EQ(place->local_rank, 0);
  EXPECT_EQ(place->local_world, 1);
  EXPECT_EQ(place->master_host, "127.0.0.1");
  EXPECT_EQ(place->master_port, 29501);
  EXPECT_FALSE(place->agent_store);
}

TEST(LaunchEnvironment, KnowsTorchrunsAgentAndRestarts) {
  Variables torchrun = by_hand_but("TORCHELASTIC_USE_AGENT_STORE", "True");
  torchrun["TORCHELASTIC_RUN_ID"] = "none";
  torchrun["TORCHELASTIC_RESTART_COUNT"] = "2";
  const auto place = read(torchrun);
  ASSERT_TRUE(place);
  EXPECT_TRUE(place->agent_store);
  EXPECT_EQ(place->incarnation, "none/2");
}

TEST(LaunchEnvironment, KnowsWhenAllRanksAreOnThisHost) {
  EXPECT_TRUE(read(kByHand)->one_host) << "nobody else reaches 127.0.0.1";
  EXPECT_TRUE(read(by_hand_but("MASTER_ADDR", "localhost"))->one_host);
  Variables elsewhere = by_hand_but("MASTER_ADDR", "10.0.0.1");
  EXPECT_FALSE(read(elsewhere)->one_host);
  elsewhere["LOCAL_RANK"] = "1";
  EXPECT_FALSE(read(elsewhere)->one_host) << "LOCAL_WORLD_SIZE is only guessed";
  elsewhere["LOCAL_WORLD_SIZE"] = "2";
  EXPECT_TRUE(read(elsewhere)->one_host);
}

TEST(LaunchEnvironment, BetweenHostsNeedsAWordAndASecret) {
  const auto refusal = [](const Variables& variables) {
    try {
      check_trust(*read(variables));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid);
      return std::string(error.what());
    }
    return std::string("none");
  };
  EXPECT_EQ(refusal(kByHand), "none");
  Variables elsewhere = by_hand_but("MASTER_ADDR", "10.0.0.1");
  EXPECT_THAT(refusal(elsewhere), ::testing::HasSubstr("--insecure"));
  elsewhere["COHORT_INSECURE"] = "0";
  EXPECT_THAT(refusal(elsewhere), ::testing::HasSubstr("--insecure"));
  elsewhere["COHORT_INSECURE"] = "1";
  EXPECT_THAT(refusal(elsewhere), ::testing::HasSubstr("COHORT_SECRET_FILE"));
  elsewhere["COHORT_SECRET_FILE"] = "secret";
  EXPECT_EQ(refusal(elsewhere), "none");
}

TEST(LaunchEnvironment, RanksOfOneRunHaveOnePassAndOtherRunsAnother) {
  const Pass one = pass_of(*read(kByHand));
  const Pass again = pass_of(*read(by_hand_but("RANK", "0")));
  const Pass other = pass_of(*read(by_hand_but("MASTER_PORT", "29502")));
  EXPECT_EQ(one.folder, again.folder);
  EXPECT_TRUE(equal(one.secret.mac({}), again.secret.mac({})));
  EXPECT_NE(one.folder, other.folder);
  EXPECT_FALSE(equal(one.secret.mac({}), other.secret.mac({})));
}

TEST(LaunchEnvironment, ASecretOfAFileIsNotTheSecretOfARun) {
  const Pass around = Pass::draw();
  const std::string file = around.folder + "/secret";
  const Secret given = Secret::in_file(file);
  Variables here = by_hand_but("COHORT_SECRET_FILE", file);
  const Pass one = pass_of(*read(here));
  EXPECT_FALSE(equal(one.secret.mac({}), given.mac({})));
  here["MASTER_ADDR"] = "localhost";
  EXPECT_TRUE(equal(one.secret.mac({}), pass_of(*read(here)).secret.mac({})))
      << "hosts may have other names for the host of rank 0";
  here["MASTER_PORT"] = "29502";
  EXPECT_FALSE(equal(one.secret.mac({}), pass_of(*read(here)).secret.mac({})));
}

const Variables kMpirun = {{"OMPI_COMM_WORLD_RANK", "1"},
                           {"OMPI_COMM_WORLD_SIZE", "3"},
                           {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                           {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"},
                           {"PMIX_NAMESPACE", "962461697"}};

TEST(LaunchEnvironment, ReadsWhatMpirunSets) {
  const auto place = read(kMpirun);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->rank, 1);
  EXPECT_EQ(place->world, 3);
  EXPECT_EQ(place->local_rank, 1);
  EXPECT_EQ(place->local_world, 3);
  EXPECT_TRUE(place->one_host);
  Variables next = kMpirun;
  next["PMIX_NAMESPACE"] = "962461698";
  EXPECT_NE(pass_of(*place).folder, pass_of(*read(next)).folder) << "another run";
  next["OMPI_COMM_WORLD_SIZE"] = "1";
  next["OMPI_COMM_WORLD_RANK"] = "0";
  EXPECT_FALSE(read(next)) << "a process alone starts its own workers";
}

TEST(LaunchEnvironment, ReadsWhatSrunSets) {
  Variables srun = {{"SLURM_PROCID", "2"},  {"SLURM_STEP_NUM_TASKS", "4"},
                    {"SLURM_LOCALID", "2"}, {"SLURM_STEP_NUM_NODES", "1"},
                    {"SLURM_JOB_ID", "77"}, {"SLURM_STEP_ID", "0"}};
  const auto place = read(srun);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->rank, 2);
  EXPECT_EQ(place->world, 4);
  EXPECT_EQ(place->local_rank, 2);
  EXPECT_TRUE(place->one_host);
  EXPECT_EQ(place->incarnation, "77/0");
  srun["SLURM_STEP_NUM_NODES"] = "2";
  EXPECT_THAT(complaint(srun), ::testing::HasSubstr("COHORT_ADDRESS=host:port"));
  srun["COHORT_ADDRESS"] = "node7:29500";
  EXPECT_FALSE(read(srun)->one_host);
  EXPECT_EQ(read(srun)->master_host, "node7");
  EXPECT_EQ(read(srun)->master_port, 29500);
  srun.erase("SLURM_STEP_NUM_TASKS");
  EXPECT_FALSE(read(srun)) << "a batch script has a SLURM_PROCID too";
}

TEST(LaunchEnvironment, MpichNamesNoRunAndNeedsAnAddress) {
  Variables mpich = {
      {"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "2"}};
  EXPECT_THAT(complaint(mpich), ::testing::HasSubstr("PMI_RANK=0"));
  mpich["COHORT_ADDRESS"] = "here";
  EXPECT_THAT(complaint(mpich), ::testing::HasSubstr("is not host:port"));
  mpich["COHORT_ADDRESS"] = "localhost:0";
  EXPECT_THAT(complaint(mpich), ::testing::HasSubstr("the port of COHORT_ADDRESS=0"));
  mpich["COHORT_ADDRESS"] = "localhost:29500";
  EXPECT_TRUE(read(mpich)->one_host);
}

TEST(LaunchEnvironment, SrunMaySpeakAsMpichDoes) {
  Variables srun = {{"SLURM_PROCID", "1"},
                    {"SLURM_STEP_NUM_TASKS", "2"},
                    {"SLURM_STEP_NUM_NODES", "1"},
                    {"PMI_RANK", "1"},
                    {"PMI_SIZE", "2"},
                    {"PMI_JOBID", "77.0"}};
  EXPECT_TRUE(read(srun)->one_host);
  srun["SLURM_STEP_NUM_TASKS"] = "1";  // mpiexec within a step of one task.
  EXPECT_THAT(complaint(srun), ::testing::HasSubstr("COHORT_ADDRESS"));
}

TEST(LaunchEnvironment, AnAddressGivenIsNotLookedForInTorchrunsStore) {
  Variables torchrun = by_hand_but("TORCHELASTIC_USE_AGENT_STORE", "True");
  EXPECT_TRUE(read(torchrun)->agent_store);
  torchrun["COHORT_ADDRESS"] = "[::1]:29500";
  EXPECT_FALSE(read(torchrun)->agent_store);
  EXPECT_EQ(read(torchrun)->master_host, "::1");
  EXPECT_TRUE(read(torchrun)->one_host);
}

TEST(LaunchEnvironment, TheInnerLauncherCounts) {
  Variables both = kMpirun;
  for (const auto& [name, value] : kByHand) both[name] = value;
  EXPECT_EQ(read(both)->world, 2);
}

TEST(LaunchEnvironment, NamesWhatIsMissingOrWrong) {
  using ::testing::HasSubstr;
  EXPECT_THAT(complaint({{"RANK", "0"}}), HasSubstr("WORLD_SIZE is not set"));
  EXPECT_THAT(complaint({{"WORLD_SIZE", "2"}}), HasSubstr("RANK is not set"));
  EXPECT_THAT(complaint(by_hand_but("MASTER_ADDR", "")), HasSubstr("MASTER_ADDR is not set"));
  EXPECT_THAT(complaint(by_hand_but("RANK", "two")), HasSubstr("RANK=two"));
  EXPECT_THAT(complaint(by_hand_but("RANK", "2")), HasSubstr("below WORLD_SIZE=2"));
  EXPECT_THAT(complaint(by_hand_but("LOCAL_WORLD_SIZE", "0")), HasSubstr("LOCAL_WORLD_SIZE=0"));
  EXPECT_THAT(complaint(by_hand_but("MASTER_PORT", "65536")), HasSubstr("from 1 to 65535"));
  EXPECT_THAT(complaint(by_hand_but("LOCAL_RANK", "2147483647")), HasSubstr("LOCAL_RANK="));
  EXPECT_LT(complaint(by_hand_but("RANK", std::string(100'000, '1').c_str())).size(), 300u);
}

}  // namespace
}  // namespace cohort::cluster
