#include "kernel/openblas_core.h"

#include <gtest/gtest.h>

namespace cohort {
namespace {

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
}  // namespace cohort
