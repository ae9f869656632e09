#include "cli/machine_facts.h"

#include <gtest/gtest.h>

/// Texts of files as several machines have them.

namespace cohort::cli {
namespace {

TEST(MachineFacts, BracketedValue) {
  EXPECT_EQ(bracketed("always [madvise] never"), "madvise");
  EXPECT_EQ(bracketed("[always] madvise never\n"), "always");
  EXPECT_EQ(bracketed("no choice"), "");
  EXPECT_EQ(bracketed("half [open"), "");
  EXPECT_EQ(bracketed(""), "");
}

TEST(MachineFacts, MemoryLine) {
  const char* text = "MemTotal:       1024 kB\nMemAvailable:    512 kB\nMemAvailableToo: 3 kB\n";
  EXPECT_EQ(meminfo_bytes(text, "MemTotal"), 1024 * 1024);
  EXPECT_EQ(meminfo_bytes(text, "MemAvailable"), 512 * 1024);
  EXPECT_EQ(meminfo_bytes(text, "Mem"), std::nullopt);
  EXPECT_EQ(meminfo_bytes("", "MemTotal"), std::nullopt);
}

TEST(MachineFacts, CpuLimit) {
  EXPECT_EQ(cpu_limit("150000 100000"), 1.5);
  EXPECT_EQ(cpu_limit("max 100000"), std::nullopt);
  EXPECT_EQ(cpu_limit(""), std::nullopt);
  EXPECT_EQ(cpu_limit("100000"), std::nullopt);
}

constexpr const char* kTorchLine =
    "7f0000000000-7f0000001000 r-xp 00000000 08:01 1 /usr/lib/libtorch_cpu.so\n";

TEST(MachineFacts, OpenBlasBehindTheAlternative) {
  const std::string maps =
      std::string(kTorchLine) +
      "7f1-7f2 r-xp 00000000 08:01 2  /usr/lib/x86_64-linux-gnu/openblas-pthread/libblas.so.3\n"
      "7f3-7f4 r-xp 00000000 08:01 3  "
      "/usr/lib/x86_64-linux-gnu/openblas-pthread/libopenblas.so.0\n";
  const BlasLibrary blas = blas_library(maps);
  EXPECT_EQ(blas.name, "OpenBLAS");
  EXPECT_EQ(blas.file, "/usr/lib/x86_64-linux-gnu/openblas-pthread/libblas.so.3");
  EXPECT_TRUE(blas.fast);
}

TEST(MachineFacts, ReferenceBlasIsSlowEvenBesideAFastOne) {
  const std::string maps =
      "7f3-7f4 r-xp 00000000 08:01 3  /usr/lib/libopenblas.so.0\n"
      "7f1-7f2 r-xp 00000000 08:01 2  /usr/lib/x86_64-linux-gnu/blas/libblas.so.3.11.0\n";
  const BlasLibrary blas = blas_library(maps);
  EXPECT_EQ(blas.name, "reference BLAS");
  EXPECT_FALSE(blas.fast);
}

TEST(MachineFacts, LibrariesOfTheirOwnName) {
  EXPECT_EQ(blas_library("1-2 r-xp 0 08:01 2 /opt/mkl/lib/libmkl_core.so.2\n").name, "MKL");
  EXPECT_EQ(blas_library("1-2 r-xp 0 08:01 2 /usr/lib/libblis.so.4\n").name, "BLIS");
  EXPECT_EQ(blas_library(kTorchLine).file, "");
}

}  // namespace
}  // namespace cohort::cli
