// Proves which name is guessed for a mistake, and what the error says where none is near.

#include "base/names.h"

#include <cohort/error.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cohort {
namespace {

const std::vector<std::string> kKnown{"momentum", "nesterov", "lr"};

TEST(NearestName, FindsWhatWasMeant) {
  EXPECT_EQ(nearest_name("momentun", kKnown), "momentum");
  EXPECT_EQ(nearest_name("nestrov", kKnown), "nesterov");
  EXPECT_EQ(nearest_name("l", kKnown), "lr");
  EXPECT_EQ(nearest_name("lr", kKnown), "lr");
}

TEST(NearestName, SaysNothingWhereNothingIsNear) {
  EXPECT_EQ(nearest_name("batch", kKnown), "");
  EXPECT_EQ(nearest_name("momentum", {}), "");
}

TEST(OneOf, JoinsForASentence) {
  EXPECT_EQ(one_of({}), "");
  EXPECT_EQ(one_of({"a"}), "a");
  EXPECT_EQ(one_of({"a", "b"}), "a or b");
  EXPECT_EQ(one_of({"a", "b", "c"}), "a, b or c");
}

std::string complaint_about(const std::string& name) {
  try {
    check_known("key", name, kKnown);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid);
    return error.what();
  }
  return "";
}

TEST(CheckKnown, AcceptsTheKnown) {
  EXPECT_EQ(complaint_about("lr"), "");
}

TEST(CheckKnown, NamesTheNearestAndAllOthers) {
  const std::string complaint = complaint_about("momentun");
  EXPECT_THAT(complaint, testing::HasSubstr("key \"momentun\" is unknown"));
  EXPECT_THAT(complaint, testing::HasSubstr("did you mean \"momentum\"?"));
  EXPECT_THAT(complaint, testing::HasSubstr("momentum, nesterov or lr"));
}

TEST(CheckKnown, GuessesNothingWhereNothingIsNear) {
  EXPECT_THAT(complaint_about("batch"), testing::Not(testing::HasSubstr("did you mean")));
}

}  // namespace
}  // namespace cohort
