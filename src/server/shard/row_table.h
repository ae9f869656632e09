#pragma once

#include <cstdint>
#include <span>

#include "server/memory/shard_memory.h"
#include "server/shard/row_sum.h"
#include "server/shard/trained_floats.h"

namespace cohort {

/// A shard's rows of one table. An update touches only the rows it has gradients of, also by rules
/// that would change others (momentum, weight decay), after what they were is saved.
/// One thread at a time. All rows given to it must be its own.
class RowTable {
 public:
  /// The optimizer must outlive it.
  RowTable(const TableArea& area, const Optimizer& optimizer);

  std::size_t width() const { return area_.shape.width; }
  const FloatsArea& floats() const { return floats_.floats(); }

  /// Writes copies of the rows one after the other.
  void copy_rows(std::span<const std::uint32_t> rows, std::span<float> out) const;

  void update(const RowGradients& gradients, const UpdateScalars& scalars);

 private:
  std::size_t offset_of(std::uint32_t row) const;

  TableArea area_;
  TrainedFloats floats_;
};

}  // namespace cohort
