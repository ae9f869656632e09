#include "kernel/cpu.h"

#include <gtest/gtest.h>

namespace cohort {
namespace {

std::string cpuinfo(const std::string& flags) {
  return "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 207\n"
         "model name\t: INTEL(R) XEON(R) PLATINUM 8581C CPU @ 2.10GHz\nflags\t\t: " +
         flags + "\nbugs\t\t: spectre_v1 avx512f\n\nprocessor\t: 1\nmodel name\t: another\n";
}

const std::string kAvx512Flags =
    "fpu sse sse2 ssse3 avx fma avx2 avx512f avx512dq avx512cd avx512bw avx512vl amx_tile";

TEST(Cpu, IsNamedAndHasItsWidestVectors) {
  EXPECT_EQ(cpu_of(cpuinfo("fpu")).name, "INTEL(R) XEON(R) PLATINUM 8581C CPU @ 2.10GHz");
  EXPECT_EQ(cpu_of(cpuinfo("fpu sse sse2 pni")).vectors, Vectors::sse);
  EXPECT_EQ(cpu_of(cpuinfo("fpu sse avx f16c")).vectors, Vectors::avx);
  EXPECT_EQ(cpu_of(cpuinfo("fpu avx fma avx2")).vectors, Vectors::avx2);
  EXPECT_EQ(cpu_of(cpuinfo(kAvx512Flags)).vectors, Vectors::avx512);
}

// A flag that is the beginning of another one is not there by that.
TEST(Cpu, APartOfWhatKernelsNeedIsNotEnough) {
  EXPECT_EQ(cpu_of(cpuinfo("avx avx2")).vectors, Vectors::avx) << "no fma";
  EXPECT_EQ(cpu_of(cpuinfo("avx fma avx2 avx512f avx512cd avx512er avx512pf")).vectors,
            Vectors::avx2)
      << "as Knights Landing";
  EXPECT_EQ(cpu_of(cpuinfo("avx_vnni avx2x fma4")).vectors, Vectors::sse);
}

TEST(Cpu, OfAnotherKindHasNoVectorsThatAreKnown) {
  const Cpu arm = cpu_of("processor\t: 0\nFeatures\t: fp asimd sve\nCPU part\t: 0xd40\n");
  EXPECT_EQ(arm.name, "unknown");
  EXPECT_EQ(arm.vectors, std::nullopt);
  EXPECT_EQ(cpu_of("").vectors, std::nullopt);
  EXPECT_EQ(cpu_of(": \n:\nflags").vectors, std::nullopt);
}

}  // namespace
}  // namespace cohort
