// Proves what is said, and advised, about machines and environments that need not exist.

#include "kernel/kernel_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "kernel/machine_test_support.h"

namespace cohort::kernel {
namespace {

using testing::HasSubstr;

const OneDnn kOneDnn{"avx512_core_amx", Vectors::avx512};

TEST(KernelReport, WhatCohortSetIsSaid) {
  const auto environment = environment_of(
      {{"COHORT_KERNELS", "OPENBLAS_CORETYPE=SkylakeX/Prescott OMP_WAIT_POLICY=PASSIVE"},
       {"OPENBLAS_CORETYPE", "SkylakeX"},
       {"OMP_WAIT_POLICY", "PASSIVE"}});
  const KernelReport report = kernel_report(xeon207("SkylakeX"), kOneDnn, 2, environment);
  EXPECT_EQ(one_line(report),
            "CPU with AVX-512, OpenBLAS SkylakeX (Prescott by itself), oneDNN avx512_core_amx, "
            "OMP_WAIT_POLICY=PASSIVE");
  EXPECT_EQ(to_json(report).dump(),
            R"({"cpu_vectors":"AVX-512","openblas_core":"SkylakeX",)"
            R"("openblas_core_by_itself":"Prescott","onednn_isa":"avx512_core_amx",)"
            R"("set_by_cohort":{"OPENBLAS_CORETYPE":"SkylakeX","OMP_WAIT_POLICY":"PASSIVE"},)"
            R"("slow":[]})");
}

TEST(KernelReport, ASlowCoreOfTheUsersIsSaidToBeTheirs) {
  const auto environment = environment_of(
      {{"OPENBLAS_CORETYPE", "Prescott"}, {"COHORT_KERNELS", "OPENBLAS_CORETYPE=SkylakeX/Zen"}});
  const KernelReport report = kernel_report(xeon207("Prescott"), kOneDnn, 1, environment);
  EXPECT_TRUE(report.set.empty());
  ASSERT_EQ(report.slow.size(), 1U);
  EXPECT_THAT(report.slow[0].what, HasSubstr("Prescott kernels (SSE), but this CPU has AVX-512"));
  EXPECT_THAT(report.slow[0].advice, HasSubstr("OPENBLAS_CORETYPE=Prescott is yours"));
}

TEST(KernelReport, ASlowCoreThatNobodyChoseComesWithAWayOut) {
  const auto nothing_set = environment_of({});
  EXPECT_THAT(kernel_report(xeon207("Prescott"), kOneDnn, 1, nothing_set).slow.at(0).advice,
              HasSubstr("OPENBLAS_CORETYPE=SkylakeX"));
  Machine old_library = xeon207("Prescott");
  old_library.knows_core = [](std::string_view) { return false; };
  EXPECT_THAT(kernel_report(old_library, kOneDnn, 1, nothing_set).slow.at(0).advice,
              HasSubstr("newer OpenBLAS"));
}

// OpenBLAS was asked for a core and has not taken it.
TEST(KernelReport, ACoreThatWasNotTakenIsSaid) {
  const auto environment = environment_of({{"COHORT_KERNELS", "OPENBLAS_CORETYPE=SkylakeX/Haswell"},
                                           {"OPENBLAS_CORETYPE", "SkylakeX"}});
  EXPECT_THAT(kernel_report(xeon207("Haswell"), kOneDnn, 1, environment).slow.at(0).advice,
              HasSubstr("newer OpenBLAS"));
}

TEST(KernelReport, OneDnnBelowTheCpuIsSaid) {
  const OneDnn narrow{"avx2", Vectors::avx2};
  const auto report = kernel_report(xeon207("SkylakeX"), narrow, 1, environment_of({}));
  EXPECT_THAT(report.slow.at(0).what, HasSubstr("oneDNN computes with avx2"));
  const auto of_user = kernel_report(xeon207("SkylakeX"), narrow, 1,
                                     environment_of({{"ONEDNN_MAX_CPU_ISA", "AVX2"}}));
  EXPECT_THAT(of_user.slow.at(0).advice, HasSubstr("ONEDNN_MAX_CPU_ISA=AVX2 is yours"));
}

TEST(KernelReport, SpinningThreadsAreSaidWhereThereAreSeveral) {
  EXPECT_TRUE(kernel_report(xeon207("SkylakeX"), kOneDnn, 1, environment_of({})).slow.empty());
  const auto report = kernel_report(xeon207("SkylakeX"), kOneDnn, 2, environment_of({}));
  EXPECT_THAT(report.slow.at(0).advice, HasSubstr("OMP_WAIT_POLICY=PASSIVE"));
  EXPECT_THAT(one_line(report), HasSubstr("SLOW: workers have 2 threads"));
}

TEST(KernelReport, OtherLibrariesAndCpusAreNotJudged) {
  const Machine arm{{"unknown", std::nullopt}, "NEOVERSEN1", [](std::string_view) { return true; }};
  const KernelReport report = kernel_report(arm, {}, 1, environment_of({}));
  EXPECT_TRUE(report.slow.empty());
  EXPECT_EQ(one_line(report), "CPU with vectors of its own kind, OpenBLAS NEOVERSEN1");
  EXPECT_TRUE(to_json(report)["onednn_isa"].is_null());
}

}  // namespace
}  // namespace cohort::kernel
