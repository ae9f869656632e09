// Proves what is read from /proc/cpuinfo of several CPUs, and what loaded libraries are taken to
// say.

#include "kernel/machine.h"

#include <gtest/gtest.h>

// An OpenBLAS and a oneDNN of the test's own, which tell what they are told to tell. This program
// exports them (see CMakeLists.txt), so they are found as those of LibTorch are.

namespace {
const char* g_core = "Prescott";
unsigned g_isa = 0;
}  // namespace

extern "C" {
const char* openblas_get_corename() {
  return g_core;
}
int gotoblas_PRESCOTT = 0;
int gotoblas_SKYLAKEX = 0;
unsigned dnnl_get_effective_cpu_isa() {
  return g_isa;
}
const char* dnnl_cpu_isa2str(unsigned isa) {
  return isa == 0xe7 ? "cpu_isa_avx512_core_bf16" : "another";
}
}

namespace cohort::kernel {
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

TEST(LoadedLibraries, OpenBlasSaysItsCoreAndWhichItKnows) {
  EXPECT_EQ(openblas_core(), "Prescott");
  EXPECT_TRUE(openblas_knows("SkylakeX"));
  EXPECT_FALSE(openblas_knows("SapphireRapids"));
}

TEST(LoadedLibraries, AnOpenBlasThatHidesItsTablesMayKnowAllNames) {
  g_core = "Haswell";
  EXPECT_TRUE(openblas_knows("SapphireRapids"));
  g_core = "Prescott";
}

// The numbers are those of oneDNN's dnnl_cpu_isa_t.
TEST(LoadedLibraries, OneDnnSaysItsInstructionSet) {
  g_isa = 0xe7;
  EXPECT_EQ(onednn_isa(), "avx512_core_bf16");
  EXPECT_EQ(onednn_vectors(), Vectors::avx512);
  g_isa = 0x7;
  EXPECT_EQ(onednn_vectors(), Vectors::avx2);
  g_isa = 0x3;
  EXPECT_EQ(onednn_vectors(), Vectors::avx);
  g_isa = 0x1;
  EXPECT_EQ(onednn_vectors(), Vectors::sse);
}

}  // namespace
}  // namespace cohort::kernel
