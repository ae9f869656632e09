#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "os/memory.h"
#include "tensor/tensor_registry.h"

namespace cohort::tensor {

/// Says of a parameter (a matrix) that each step touches few of its rows: an embedding. A strategy
/// may then keep the table apart (TableRows); one that does not trains it like any other parameter.
///
/// Owned by the layer whose parameter it is, and in force from construction to destruction; how it
/// is found and by whom is in tensor_registry.h.
class TableMark {
 public:
  explicit TableMark(const torch::Tensor& parameter);

  static bool has(const torch::Tensor& parameter);

 private:
  TensorRegistry<TableMark>::Entry entry_;
};

/// A table whose current values live elsewhere (on servers): here are the rows a worker has asked
/// for, and the gradients of the rows its step has touched. There is address space for all rows,
/// but only pages that were touched take memory, so memory and work are in proportion to those
/// rows.
///
/// Owned by the strategy that keeps tables apart, one per table, and found by the embedding through
/// of() while it lives (tensor_registry.h). Not for several threads. In a step:
///
///   begin_step()       by the strategy: no row is touched
///   need(ids)          by the layer in forward: fetch is called, then it reads the parameter
///   add_gradients()    by the layer in backward; rows that come again are added up
///   touched()          by the strategy: what is to be pushed
class TableRows {
 public:
  /// Brings the current values of these rows (ascending, each once) to `values()`.
  using Fetch = std::function<void(std::span<const std::uint32_t> rows)>;

  /// The rows of `parameter`, or null where it is trained as a whole.
  static TableRows* of(const torch::Tensor& parameter);

  /// Moves the parameter to memory of this object, of which it is a view from now on: the model
  /// must not be used once this is gone. Its values come along only where `keep_values`.
  TableRows(torch::Tensor parameter, bool keep_values, Fetch fetch);

  std::size_t rows() const { return rows_; }
  std::size_t width() const { return width_; }
  std::span<float> values() const { return memory_.floats().first(rows_ * width_); }
  std::span<float> row(std::size_t index) const {
    return memory_.floats().subspan(index * width_, width_);
  }

  /// For a layer: makes the rows of these ids current before it reads them.
  void need(std::span<const std::int64_t> ids);

  /// For a layer: adds gradients, one row of `width()` floats for each id.
  void add_gradients(std::span<const std::int64_t> ids, std::span<const float> gradients);

  void begin_step();

  /// The rows touched since begin_step(), ascending, and their gradients in that order.
  struct Touched {
    std::vector<std::uint32_t> rows;
    std::vector<float> gradients;
  };
  Touched touched() const;

 private:
  torch::Tensor parameter_;
  std::size_t rows_;
  std::size_t width_;
  os::PrivateMemory memory_;
  Fetch fetch_;
  std::unordered_map<std::uint32_t, std::size_t> place_of_row_;  ///< In gradients_, in floats.
  std::vector<float> gradients_;  ///< A row after the other, in the order they were touched first.
  TensorRegistry<TableRows>::Entry entry_;
};

}  // namespace cohort::tensor
