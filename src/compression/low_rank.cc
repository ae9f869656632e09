#include "compression/low_rank.h"

#include <algorithm>
#include <cmath>

#include "base/fail.h"
#include "base/random.h"
#include "compression/float_bits.h"

namespace cohort::compression {
namespace {

void check_matrices(const CodecShape& shape) {
  std::size_t free = 0;
  for (const MatrixShape& matrix : shape.matrices) {
    const std::size_t room = matrix.offset <= shape.count ? shape.count - matrix.offset : 0;
    if (matrix.columns == 0 || matrix.rows > room / matrix.columns || matrix.offset < free) {
      fail(ErrorCode::invalid,
           "a matrix of {} x {} at float {} overlaps another or lies outside of {} floats",
           matrix.rows, matrix.columns, matrix.offset, shape.count);
    }
    free = matrix.offset + matrix.rows * matrix.columns;
  }
}

}  // namespace

// Cuts the vector into matrices that are worth their factors and what is between them. Factors of a
// matrix have rank · (rows + columns) floats; where that is no less than the matrix has itself, it
// travels plain, and more exactly.
LowRank::LowRank(const CodecShape& shape, std::int64_t rank, std::uint64_t seed)
    : rank_(static_cast<std::size_t>(rank)), seed_(seed) {
  if (rank < 1) {
    fail(ErrorCode::invalid, "compression rank is {}; it must be at least 1", rank);
  }
  check_matrices(shape);
  std::size_t free = 0;
  const auto add_plain = [&](std::size_t end) {
    if (free < end) plain_.push_back({free, end});
    plain_size_ += end - free;
  };
  for (const MatrixShape& matrix : shape.matrices) {
    // Written as a division, since a rank may be any number.
    const std::size_t floats = matrix.rows * matrix.columns;
    if (rank_ >= (floats + matrix.rows + matrix.columns - 1) / (matrix.rows + matrix.columns)) {
      continue;
    }
    add_plain(matrix.offset);
    free = matrix.offset + floats;
    add_matrix(matrix);
  }
  add_plain(shape.count);
  start_.resize(right_size_);
}

void LowRank::add_matrix(const MatrixShape& shape) {
  matrices_.push_back({shape, left_size_, right_size_});
  left_size_ += rank_ * shape.rows;
  right_size_ += rank_ * shape.columns;
}

void LowRank::start_from(std::span<const float> right) {
  std::ranges::copy(right, start_.begin());
}

CodecMemory LowRank::memory() const {
  return {.floats = start_, .numbers = {static_cast<std::int64_t>(vectors_)}};
}

void LowRank::recall(const CodecMemory& memory) {
  if (memory.numbers.size() != 1 || memory.floats.size() != start_.size()) return;
  vectors_ = static_cast<std::uint64_t>(memory.numbers[0]);
  start_from(memory.floats);
}

/// A vector that is zero, or not finite, would find nothing in any later matrix either: it is
/// replaced by random numbers. The others are made as long as 1, so that products neither grow nor
/// fade from vector to vector.
void LowRank::replace_useless_start() {
  std::size_t number = 0;
  for (const Factored& matrix : matrices_) {
    for (std::size_t k = 0; k < rank_; ++k, ++number) {
      const std::size_t columns = matrix.shape.columns;
      const auto vector = std::span(start_).subspan(matrix.right + k * columns, columns);
      double norm = std::sqrt(dot(vector, vector));
      if (!std::isfinite(norm) || norm == 0) {
        Random random(seed_, (vectors_ << 32) + number);
        for (float& x : vector) x = static_cast<float>(random.normal());
        norm = std::sqrt(static_cast<double>(columns));
      }
      for (float& x : vector) x = static_cast<float>(x / norm);
    }
  }
  ++vectors_;
}

void LowRank::project(std::span<const float> values, std::span<float> left) {
  replace_useless_start();
  for (const Factored& matrix : matrices_) {
    const auto [offset, rows, columns] = matrix.shape;
    multiply({values.data() + offset, rows, columns},
             std::span(start_).subspan(matrix.right, rank_ * columns),
             left.subspan(matrix.left, rank_ * rows));
  }
}

void LowRank::orthonormalise(std::span<float> left) const {
  for (const Factored& matrix : matrices_) {
    const std::size_t rows = matrix.shape.rows;
    compression::orthonormalise(left.subspan(matrix.left, rank_ * rows), rows);
  }
}

void LowRank::project_back(std::span<const float> values, std::span<const float> left,
                           std::span<float> right) const {
  for (const Factored& matrix : matrices_) {
    const auto [offset, rows, columns] = matrix.shape;
    multiply_transposed({values.data() + offset, rows, columns},
                        left.subspan(matrix.left, rank_ * rows),
                        right.subspan(matrix.right, rank_ * columns));
  }
  drop_non_finite(right);
}

void LowRank::gather_plain(std::span<const float> values, std::span<float> plain) const {
  for_each_plain(values, plain, [](std::span<const float> from, std::span<float> to) {
    std::ranges::copy(from, to.begin());
  });
}

void LowRank::add_product(const Factors& factors, std::span<float> values) const {
  std::vector<float> weights(rank_);
  for (const Factored& matrix : matrices_) {
    const auto [offset, rows, columns] = matrix.shape;
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t k = 0; k < rank_; ++k) {
        weights[k] = factors.left[matrix.left + k * rows + row];
      }
      add_combination(values.subspan(offset + row * columns, columns), weights,
                      factors.right.data() + matrix.right);
    }
  }
}

// For error feedback: what is left of the values once the message has said its part. A gradient
// that is not finite would leave a rest that never is again; it is dropped instead.
void LowRank::subtract_product(const Factors& factors, std::span<float> values) const {
  std::vector<float> weights(rank_);
  for (const Factored& matrix : matrices_) {
    const auto [offset, rows, columns] = matrix.shape;
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t k = 0; k < rank_; ++k) {
        weights[k] = -factors.left[matrix.left + k * rows + row];
      }
      const auto in_row = values.subspan(offset + row * columns, columns);
      add_combination(in_row, weights, factors.right.data() + matrix.right);
      drop_non_finite(in_row);
    }
  }
}

void LowRank::clear_matrices(std::span<float> values) const {
  for (const Factored& matrix : matrices_) {
    const auto [offset, rows, columns] = matrix.shape;
    std::ranges::fill(values.subspan(offset, rows * columns), 0.0F);
  }
}

}  // namespace cohort::compression
