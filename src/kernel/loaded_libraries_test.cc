#include "kernel/loaded_libraries.h"

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

namespace cohort {
namespace {

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
}  // namespace cohort
