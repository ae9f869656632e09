#pragma once

#include <cohort/model.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace cohort {

/// Where each tensor of a model stands in one flat buffer of floats. Every tensor starts on a
/// 64-byte boundary; the floats between two tensors are padding and stay zero.
struct FlatEntry {
  std::string name;
  std::vector<std::int64_t> shape;
  std::size_t offset = 0;  ///< In floats.
  std::size_t count = 0;
};

struct FlatLayout {
  std::vector<FlatEntry> entries;
  std::size_t size = 0;  ///< In floats, padding included; a multiple of 16.

  /// The layout of these tensors in their order. Throws Error(unsupported) for one that is not a
  /// dense float32 tensor on the CPU.
  static FlatLayout of(const std::vector<NamedTensor>& tensors);
};

}  // namespace cohort
