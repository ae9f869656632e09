#include "compression/low_rank.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/vectorize.h"

namespace cohort::compression {
namespace {

// Sums are kept in 16 lanes, one cache line of floats, whatever the processor's vectors hold.
constexpr std::size_t kSumLanes = 16;
using Lanes = float __attribute__((vector_size(kSumLanes * sizeof(float))));

// Vectors are taken four at a time, so that what they need stays in registers. Where fewer are
// left, the last stands in for those that are missing and its extra results are dropped.
constexpr std::size_t kFour = 4;

// Rows that are gathered into one product before it is written back.
constexpr std::size_t kRowGroup = 8;

struct Four {
  const float* vector[kFour];

  static Four of(const float* vectors, std::size_t length, std::size_t available) {
    Four four;
    for (std::size_t k = 0; k < kFour; ++k) {
      four.vector[k] = vectors + std::min(k, available - 1) * length;
    }
    return four;
  }
};

/// sums[k] = row · vector[k].
COHORT_VECTORIZE void dot_rows(const MatrixView& matrix, const Four& four, float* __restrict sums) {
  const auto [values, rows, columns] = matrix;
  const Four with = four;
  for (std::size_t row = 0; row < rows; ++row) {
    const float* const a = values + row * columns;
    Lanes total[kFour] = {};
    std::size_t j = 0;
    for (; j + kSumLanes <= columns; j += kSumLanes) {
      Lanes left;
      std::memcpy(&left, a + j, sizeof left);
#pragma GCC unroll 4
      for (std::size_t k = 0; k < kFour; ++k) {
        Lanes right;
        std::memcpy(&right, with.vector[k] + j, sizeof right);
        total[k] += left * right;
      }
    }
    for (std::size_t k = 0; k < kFour; ++k) {
      for (std::size_t i = j; i < columns; ++i) total[k][i - j] += a[i] * with.vector[k][i];
      float sum = 0;
      for (std::size_t lane = 0; lane < kSumLanes; ++lane) sum += total[k][lane];
      sums[row * kFour + k] = sum;
    }
  }
}

/// product[k][j] += sum over the rows of weights[row * 4 + k] * matrix[row][j]. All of a stretch is
/// read before any of it is written, so a stand-in writes what the vector it stands for writes.
COHORT_VECTORIZE void add_rows(const MatrixView& group, const float* __restrict weights,
                               float* const* products) {
  const auto [values, rows, columns] = group;
  float* const to[kFour] = {products[0], products[1], products[2], products[3]};
  std::size_t j = 0;
  for (; j + kSumLanes <= columns; j += kSumLanes) {
    Lanes total[kFour];
    for (std::size_t k = 0; k < kFour; ++k) std::memcpy(&total[k], to[k] + j, sizeof(Lanes));
    for (std::size_t row = 0; row < rows; ++row) {
      Lanes left;
      std::memcpy(&left, values + row * columns + j, sizeof left);
#pragma GCC unroll 4
      for (std::size_t k = 0; k < kFour; ++k) total[k] += left * weights[row * kFour + k];
    }
    for (std::size_t k = 0; k < kFour; ++k) std::memcpy(to[k] + j, &total[k], sizeof(Lanes));
  }
  for (; j < columns; ++j) {
    float total[kFour];
    for (std::size_t k = 0; k < kFour; ++k) total[k] = to[k][j];
    for (std::size_t row = 0; row < rows; ++row) {
      const float left = values[row * columns + j];
      for (std::size_t k = 0; k < kFour; ++k) total[k] += left * weights[row * kFour + k];
    }
    for (std::size_t k = 0; k < kFour; ++k) to[k][j] = total[k];
  }
}

COHORT_VECTORIZE void add_four(std::span<float> row, const float* weights, const Four& four) {
  float* __restrict out = row.data();
  const float w0 = weights[0], w1 = weights[1], w2 = weights[2], w3 = weights[3];
  const float* const v0 = four.vector[0];
  const float* const v1 = four.vector[1];
  const float* const v2 = four.vector[2];
  const float* const v3 = four.vector[3];
#pragma GCC ivdep
  for (std::size_t j = 0; j < row.size(); ++j) {
    out[j] += (w0 * v0[j] + w1 * v1[j]) + (w2 * v2[j] + w3 * v3[j]);
  }
}

COHORT_VECTORIZE double dot_loop(const float* __restrict a, const float* __restrict b,
                                 std::size_t count) {
  double sums[kSumLanes] = {};
  std::size_t i = 0;
  for (; i + kSumLanes <= count; i += kSumLanes) {
    for (std::size_t lane = 0; lane < kSumLanes; ++lane) {
      sums[lane] += static_cast<double>(a[i + lane]) * static_cast<double>(b[i + lane]);
    }
  }
  for (; i < count; ++i)
    sums[i % kSumLanes] += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  double sum = 0;
  for (const double lane : sums) sum += lane;
  return sum;
}

void take_off_projection(std::span<float> from, std::span<const float> unit) {
  const auto weight = static_cast<float>(-dot(from, unit));
  add_combination(from, {&weight, 1}, unit.data());
}

}  // namespace

void multiply(const MatrixView& matrix, std::span<const float> vectors, std::span<float> products) {
  const std::size_t rank = vectors.size() / matrix.columns;
  // A few rows at a time, so that they are still in the cache for the next four vectors.
  constexpr std::size_t kRows = 16;
  float sums[kRows * kFour];
  for (std::size_t begin = 0; begin < matrix.rows; begin += kRows) {
    const MatrixView rows{matrix.values + begin * matrix.columns,
                          std::min(kRows, matrix.rows - begin), matrix.columns};
    for (std::size_t k = 0; k < rank; k += kFour) {
      const std::size_t used = std::min(kFour, rank - k);
      dot_rows(rows, Four::of(vectors.data() + k * matrix.columns, matrix.columns, used), sums);
      for (std::size_t i = 0; i < used; ++i) {
        float* const product = products.data() + (k + i) * matrix.rows + begin;
        for (std::size_t row = 0; row < rows.rows; ++row) product[row] = sums[row * kFour + i];
      }
    }
  }
}

void multiply_transposed(const MatrixView& matrix, std::span<const float> vectors,
                         std::span<float> products) {
  const std::size_t rank = vectors.size() / matrix.rows;
  std::ranges::fill(products, 0.0F);
  for (std::size_t begin = 0; begin < matrix.rows; begin += kRowGroup) {
    const MatrixView group{matrix.values + begin * matrix.columns,
                           std::min(kRowGroup, matrix.rows - begin), matrix.columns};
    for (std::size_t k = 0; k < rank; k += kFour) {
      float weights[kRowGroup * kFour];
      float* to[kFour];
      for (std::size_t i = 0; i < kFour; ++i) {
        const std::size_t vector = std::min(k + i, rank - 1);
        to[i] = products.data() + vector * matrix.columns;
        for (std::size_t row = 0; row < group.rows; ++row) {
          weights[row * kFour + i] = vectors[vector * matrix.rows + begin + row];
        }
      }
      add_rows(group, weights, to);
    }
  }
}

void add_combination(std::span<float> row, std::span<const float> weights, const float* vectors) {
  for (std::size_t k = 0; k < weights.size(); k += kFour) {
    const std::size_t used = std::min(kFour, weights.size() - k);
    float four[kFour] = {};
    std::copy_n(weights.data() + k, used, four);
    add_four(row, four, Four::of(vectors + k * row.size(), row.size(), used));
  }
}

double dot(std::span<const float> a, std::span<const float> b) {
  return dot_loop(a.data(), b.data(), a.size());
}

void orthonormalise(std::span<float> vectors, std::size_t length) {
  for (std::size_t begin = 0; begin < vectors.size(); begin += length) {
    const auto vector = vectors.subspan(begin, length);
    const double before = std::sqrt(dot(vector, vector));
    // Twice, since the first time leaves rounding errors that matter when little is left.
    for (int round = 0; round < 2; ++round) {
      for (std::size_t other = 0; other < begin; other += length) {
        take_off_projection(vector, vectors.subspan(other, length));
      }
    }
    const double norm = std::sqrt(dot(vector, vector));
    // What is left of a combination of the others is noise. The comparison is false for NaN.
    constexpr double kNoise = 1e-5;
    const bool useful = std::isfinite(before) && norm > before * kNoise;
    for (float& x : vector) x = useful ? static_cast<float>(x / norm) : 0.0F;
  }
}

}  // namespace cohort::compression
