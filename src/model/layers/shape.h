#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cohort {

/// The shape of one sample on its way through a network; the batch dimension is left out.
struct Shape {
  std::vector<std::int64_t> sizes;
  bool tokens = false;  ///< Ids that still have to be embedded.

  bool is_flat() const { return !tokens && sizes.size() == 1; }
  bool is_sequence() const { return !tokens && sizes.size() == 2; }  ///< positions x features
  bool is_image() const { return !tokens && sizes.size() == 3; }     ///< channels x height x width

  std::int64_t elements() const;

  bool operator==(const Shape&) const = default;
};

/// "32x7x7"; tokens say so: "128 tokens".
std::string to_string(const Shape& shape);

}  // namespace cohort
