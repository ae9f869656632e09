#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cohort::cli {

/// What files of /proc and /sys say, from their text, for `cohort doctor`. Pure functions that read
/// no file and never throw, so that they can be tested with the texts of other machines. Without
/// torch: the test program of this room links none.

/// The value in brackets: "madvise" of "always [madvise] never". Empty where there is none.
std::string bracketed(std::string_view text);

/// A line of /proc/meminfo in bytes: meminfo_bytes(text, "MemAvailable").
std::optional<std::int64_t> meminfo_bytes(std::string_view text, std::string_view name);

/// The cores that a cgroup's cpu.max ("150000 100000", "max 100000") grants; nothing where it sets
/// no limit.
std::optional<double> cpu_limit(std::string_view cpu_max);

/// The BLAS that a process has loaded.
struct BlasLibrary {
  std::string file;  ///< Empty where none was found.
  std::string name;  ///< OpenBLAS, MKL, BLIS, ATLAS, reference BLAS.
  bool fast = true;  ///< The reference implementation is many times slower than all others.
};
/// From the text of /proc/self/maps. Where several are loaded, the one that libblas.so stands for,
/// which is the one that LibTorch calls; otherwise the first.
BlasLibrary blas_library(std::string_view proc_maps);

}  // namespace cohort::cli
