#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "optimizer/optimizer.h"
#include "server/memory/shard_memory.h"
#include "server/shard/gradient_sum.h"
#include "server/wire/model_message.h"

namespace cohort::server {

/// The parameters of a shard with their optimizer slots, and how gradients change them.
///
///   ShardModel ─┬─ TrainedFloats   the dense floats: an update goes over all of them
///               └─ RowTable …      a table each: an update goes over the rows it has gradients of
///
/// The floats stand in the shard's memory (ShardMemory), and each block is saved there before it is
/// changed. Begin and commit of an update are the caller's (shard_round.cc): what is killed in
/// between is undone by ShardMemory::recover(). Sizes and rows must have been checked. One thread
/// at a time.

/// Parameters with their optimizer slots, in memory of their owner.
class TrainedFloats {
 public:
  /// The optimizer must outlive it.
  TrainedFloats(const DenseArea& area, const optimizer::Optimizer& optimizer);

  const FloatsArea& floats() const { return area_.now; }
  std::span<float> values() const { return area_.now.values; }

  /// Updates gradients.size() floats from `offset`; the others stay as they are. Saves nothing.
  void update_part(std::size_t offset, std::span<const float> gradients,
                   const optimizer::UpdateScalars& scalars);

  struct Update {
    optimizer::UpdateScalars scalars;
    bool want_norm = false;
    std::span<const std::span<float>> copies = {};  ///< Each gets the updated floats.
  };

  /// One pass over all floats: sum, update and copies of one block after the other, each saved
  /// before in memory that lasts. Returns the sum of squares of the gradients (before
  /// `gradient_scale`) where the norm is wanted.
  double update(const Aggregate& gradients, const Update& update);

 private:
  const optimizer::Optimizer& optimizer_;
  DenseArea area_;
  std::vector<float> scratch_;                // For one block of a sum.
  std::vector<std::span<float>> part_slots_;  // Of update_part(); kept, so that it allocates once.
};

/// A shard's rows of one table. An update touches only the rows it has gradients of, also by rules
/// that would change others (momentum, weight decay), after what they were is saved. All rows given
/// to it must be its own.
class RowTable {
 public:
  /// The optimizer must outlive it.
  RowTable(const TableArea& area, const optimizer::Optimizer& optimizer);

  std::size_t width() const { return area_.shape.width; }
  const FloatsArea& floats() const { return floats_.floats(); }

  /// Writes copies of the rows one after the other.
  void copy_rows(std::span<const std::uint32_t> rows, std::span<float> out) const;

  void update(const RowGradients& gradients, const optimizer::UpdateScalars& scalars);

 private:
  std::size_t offset_of(std::uint32_t row) const;

  TableArea area_;
  TrainedFloats floats_;
};

/// All of a shard's parameters, and how a set of pushes changes them. Sums are made in the order in
/// which the pushes are given.
class ShardModel {
 public:
  /// In this memory, which must outlive it and may have a model already. Throws Error(invalid)
  /// where its slots are not those of the optimizer.
  ShardModel(const ShardMemory& memory, const OptimizerOptions& optimizer);

  /// The first model comes, of `total` floats in the order of ModelMessage; those that it does not
  /// have (slots) are zero. Throws Error(invalid) for sizes that are not the shape's.
  void expect(const ModelMessage& head, std::size_t total);
  /// A part of it, which must be within it.
  void put(std::size_t begin, std::span<const float> floats);

  std::span<const float> dense() const { return dense_.values(); }
  const RowTable& table(std::size_t index) const { return tables_[index]; }

  /// Everything, in the order of ModelMessage.
  std::size_t floats() const;
  void copy_to(std::span<float> all) const;

  /// Returns the sum of squares of the summed gradients, where wanted.
  double update(std::span<const PushedGradients> pushes, const TrainedFloats::Update& update);

 private:
  std::vector<std::span<float>> in_order() const;
  std::vector<RowGradients> rows_of(std::size_t table,
                                    std::span<const PushedGradients> pushes) const;
  double update_rows(std::size_t table, std::span<const RowGradients> parts,
                     const TrainedFloats::Update& update);

  std::unique_ptr<optimizer::Optimizer> optimizer_;
  TrainedFloats dense_;
  std::vector<RowTable> tables_;
  FloatList<float> expected_;                // Where the floats of a first model go.
  std::vector<Contribution> contributions_;  // To the sum that is made.
};

}  // namespace cohort::server
