#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "collective/elements.h"
#include "collective/reduce_kernel.h"

namespace cohort::group {

/// Somebody's tensor: contiguous memory of one type. `hold` keeps it alive while a call that was
/// started goes on. No dimensions: one element, which counts as one row.
struct Array {
  std::span<std::byte> bytes;
  collective::ElementType type = collective::ElementType::f32;
  std::vector<std::int64_t> shape;
  std::shared_ptr<const void> hold = {};

  collective::Elements elements() const { return {bytes, type}; }
  /// The size of the first dimension.
  std::int64_t rows() const { return shape.empty() ? 1 : shape.front(); }
};

/// What an array may lie in, as long as somebody has `hold`.
struct Memory {
  std::span<std::byte> bytes;
  std::shared_ptr<const void> hold = {};
};

/// Of this process alone, for any type, not set to anything.
Memory plain_memory(std::size_t bytes);

/// How elements are combined: by a reduction, or to their mean, which is their sum divided.
struct Combine {
  collective::Reduction how = collective::Reduction::sum;
  bool mean = false;
};

/// What a call says before it says anything to anybody: each throws Error(invalid).

/// The bytes are those of the shape and type.
void check_array(const Array& array);
/// All are right, and of one type.
void check_arrays(std::span<const Array> arrays);
/// Elements of this type can be combined so: bytes cannot, and only floating ones have a mean.
void check_combine(const Combine& combine, collective::ElementType type);

/// The bytes of an array of this type and shape. Throws Error(invalid) where there are no such.
std::size_t bytes_of(collective::ElementType type, std::span<const std::int64_t> shape);

/// Several arrays one after the other, so that they can be made one call of: copied to `packed`,
/// which grows to what is needed and is kept, and back.
std::span<std::byte> pack(std::span<const Array> arrays, std::vector<std::byte>& packed);
void unpack(std::span<const std::byte> packed, std::span<const Array> arrays);

std::size_t bytes_of_all(std::span<const Array> arrays);

/// Calls `body` with the elements of all arrays as if they were one: packed, but for a single one.
template <class Body>
void as_one(std::span<const Array> arrays, std::vector<std::byte>& packed, Body&& body) {
  if (arrays.size() == 1) return body(arrays.front().elements());
  const std::span<std::byte> all = pack(arrays, packed);
  body(collective::Elements(all,
                            arrays.empty() ? collective::ElementType::byte : arrays.front().type));
  unpack(all, arrays);
}

}  // namespace cohort::group
