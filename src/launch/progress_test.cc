// What is said to the user, caught from standard output.

#include "launch/progress.h"

#include <gmock/gmock.h>

namespace cohort::launch {
namespace {

TEST(Progress, SaysAsJsonWhatIsNotUtf8) {
  RunOptions options;
  options.json_log = true;
  const ControlBlock control(1, 0);
  Progress progress(options, control, 1);
  testing::internal::CaptureStdout();
  progress.say("cannot open \xff.csv");
  EXPECT_EQ(testing::internal::GetCapturedStdout(),
            "{\"message\":\"cannot open \xef\xbf\xbd.csv\"}\n");
}

}  // namespace
}  // namespace cohort::launch
