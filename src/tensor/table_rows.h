#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "os/private_memory.h"

namespace cohort {

/// Says of a parameter (a matrix) that each step touches few of its rows: an embedding. It counts
/// from construction to destruction. A strategy may then keep the table apart (TableRows); one that
/// does not trains it like any other parameter.
class TableMark {
 public:
  explicit TableMark(const torch::Tensor& parameter);
  ~TableMark();
  TableMark(const TableMark&) = delete;
  TableMark& operator=(const TableMark&) = delete;

  static bool has(const torch::Tensor& parameter);

 private:
  const c10::TensorImpl* parameter_;
};

/// A table that lives elsewhere: here are only the rows a worker has asked for, and the gradients
/// of the rows its step has touched. Memory and work are in proportion to the rows, not the table.
class TableRows {
 public:
  /// Brings the current values of these rows (ascending, each once) to `values()`.
  using Fetch = std::function<void(std::span<const std::uint32_t> rows)>;

  /// The rows of `parameter`, or null where it is trained as a whole.
  static TableRows* of(const torch::Tensor& parameter);

  /// Moves the parameter to memory of its own. Its values come along only where `keep_values`.
  TableRows(torch::Tensor parameter, bool keep_values, Fetch fetch);
  ~TableRows();
  TableRows(const TableRows&) = delete;
  TableRows& operator=(const TableRows&) = delete;

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
  PrivateMemory memory_;
  Fetch fetch_;
  std::unordered_map<std::uint32_t, std::size_t> place_of_row_;  // In gradients_.
  std::vector<float> gradients_;
};

}  // namespace cohort
