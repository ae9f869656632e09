// Proves what is read from environments of a test's own, and that each mistake in one is named.

#include "cluster/launch_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

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
  for (const std::string& folder : {one.folder, other.folder}) ::rmdir(folder.c_str());
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
