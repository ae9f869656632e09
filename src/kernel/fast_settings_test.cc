// Proves which settings a machine and an environment lead to, on machines that need not exist.

#include "kernel/fast_settings.h"

#include <gtest/gtest.h>

#include "kernel/machine_test_support.h"

namespace cohort::kernel {
namespace {

const Setting kCore{"OPENBLAS_CORETYPE", "SkylakeX", "Prescott"};
const Setting kWait{"OMP_WAIT_POLICY", "PASSIVE", ""};
using Settings = std::vector<Setting>;

TEST(FastSettings, AreWhatTheEnvironmentLacks) {
  const auto nothing_set = environment_of({});
  EXPECT_EQ(missing_settings(xeon207("Prescott"), 2, nothing_set), (Settings{kCore, kWait}));
  EXPECT_EQ(missing_settings(xeon207("Prescott"), 1, nothing_set), Settings{kCore});
  EXPECT_EQ(missing_settings(xeon207("SkylakeX"), 2, nothing_set), Settings{kWait});
  EXPECT_EQ(missing_settings(xeon207("Cooperlake"), 1, nothing_set), Settings{});
}

TEST(FastSettings, AnotherBlasHasNoCore) {
  EXPECT_EQ(missing_settings(xeon207(""), 1, environment_of({})), Settings{});
}

TEST(FastSettings, LeaveAloneWhatTheUserSet) {
  const Machine machine = xeon207("Prescott");
  EXPECT_EQ(missing_settings(machine, 2, environment_of({{"OPENBLAS_CORETYPE", "Prescott"}})),
            Settings{kWait});
  EXPECT_EQ(missing_settings(machine, 2, environment_of({{"OPENBLAS_CORETYPE", ""}})),
            Settings{kWait});
  for (const char* name : {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"}) {
    EXPECT_EQ(missing_settings(machine, 2, environment_of({{name, "ACTIVE"}})), Settings{kCore});
  }
}

TEST(FastSettings, ThreadsAreTheUsersWhereThatIsANumber) {
  EXPECT_EQ(chosen_threads(environment_of({{"OMP_NUM_THREADS", "3"}})), 3);
  EXPECT_EQ(chosen_threads(environment_of({{"OMP_NUM_THREADS", "none"}})), std::nullopt);
  EXPECT_EQ(chosen_threads(environment_of({{"OMP_NUM_THREADS", "-2"}})), std::nullopt);
  EXPECT_EQ(chosen_threads(environment_of({})), std::nullopt);
}

TEST(FastSettings, TheMarkSaysThemAgain) {
  const Settings both = {kCore, kWait};
  EXPECT_EQ(to_mark(both), "OPENBLAS_CORETYPE=SkylakeX/Prescott OMP_WAIT_POLICY=PASSIVE");
  EXPECT_EQ(from_mark(to_mark(both)), both);
  EXPECT_EQ(from_mark(""), Settings{});
  EXPECT_EQ(from_mark("off  no"), Settings{});
}

const Cpu kXeon207{"Xeon of model 207", Vectors::avx512};
const Cpu kAlderLake{"AVX2 alone", Vectors::avx2};
const Cpu kZen4{"Zen 4", Vectors::avx512};

bool knows_all(std::string_view) {
  return true;
}

TEST(OpenBlasCore, OneThatIsTooOldForTheCpuIsReplaced) {
  EXPECT_EQ(better_core(kXeon207, "Prescott", knows_all), "SkylakeX");
  EXPECT_EQ(better_core(kXeon207, "Haswell", knows_all), "SkylakeX");
  EXPECT_EQ(better_core({"Zen 5", Vectors::avx512}, "Barcelona", knows_all), "SkylakeX");
  EXPECT_EQ(better_core(kAlderLake, "Prescott", knows_all), "Haswell");
  EXPECT_EQ(better_core({"AVX alone", Vectors::avx}, "Prescott", knows_all), "Sandybridge");
}

TEST(OpenBlasCore, OneThatFitsIsLeftAlone) {
  EXPECT_EQ(better_core(kZen4, "Cooperlake", knows_all), "");
  EXPECT_EQ(better_core(kXeon207, "SkylakeX", knows_all), "");
  EXPECT_EQ(better_core(kXeon207, "SapphireRapids", knows_all), "");
  EXPECT_EQ(better_core(kAlderLake, "Zen", knows_all), "");
  EXPECT_EQ(better_core({"no AVX", Vectors::sse}, "Prescott", knows_all), "");
  EXPECT_EQ(better_core({"ARM", std::nullopt}, "Prescott", knows_all), "");
}

TEST(OpenBlasCore, UnknownNamesAreLeftAlone) {
  EXPECT_EQ(better_core(kXeon207, "", knows_all), "");
  EXPECT_EQ(better_core(kXeon207, "GraniteRapids", knows_all), "");
}

TEST(OpenBlasCore, OnlyWhatThisOpenBlasKnowsIsAskedFor) {
  const auto without_avx512 = [](std::string_view core) { return core != "SkylakeX"; };
  EXPECT_EQ(better_core(kXeon207, "Prescott", without_avx512), "Haswell");
  EXPECT_EQ(better_core(kXeon207, "Haswell", without_avx512), "");
  EXPECT_EQ(better_core(kXeon207, "Prescott", [](std::string_view) { return false; }), "");
}

}  // namespace
}  // namespace cohort::kernel
