#pragma once

#include <memory>
#include <span>
#include <vector>

#include "optimizer/optimizer.h"
#include "server/memory/shard_memory.h"
#include "server/shard/gradient_sum.h"
#include "server/shard/row_table.h"
#include "server/shard/trained_floats.h"
#include "server/wire/float_list.h"
#include "server/wire/model_message.h"

namespace cohort {

/// The parameters of a shard, and how a set of pushes changes them. Sums are made in the order in
/// which the pushes are given. Sizes and rows must have been checked. One thread at a time.
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

  std::unique_ptr<Optimizer> optimizer_;
  TrainedFloats dense_;
  std::vector<RowTable> tables_;
  FloatList<float> expected_;
  std::vector<Contribution> contributions_;  // To the sum that is made.
};

}  // namespace cohort
