#pragma once

#include <cstddef>
#include <span>

namespace cohort::compression {

/// Products of a large matrix and a few vectors, each in one pass over the matrix at the speed of
/// memory. Every sum is made in an order that depends on the sizes only.

/// A matrix, row after row, that is not owned.
struct MatrixView {
  const float* values;
  std::size_t rows;
  std::size_t columns;
};

/// products[k] = matrix · vectors[k]: `vectors` holds `rank` vectors of `columns` floats one after
/// the other, `products` as many of `rows` floats.
void multiply(const MatrixView& matrix, std::span<const float> vectors, std::span<float> products);

/// products[k] = transposed matrix · vectors[k], sizes the other way round.
void multiply_transposed(const MatrixView& matrix, std::span<const float> vectors,
                         std::span<float> products);

/// row[j] += sum over k of weights[k] · vectors[k][j]; vectors of row.size() floats one after the
/// other.
void add_combination(std::span<float> row, std::span<const float> weights, const float* vectors);

/// Makes vectors of `length` floats, one after the other, orthogonal and of length 1. One that is
/// (nearly) a combination of those before it, or not finite, becomes zero.
void orthonormalise(std::span<float> vectors, std::size_t length);

/// The sum of a[i] * b[i].
double dot(std::span<const float> a, std::span<const float> b);

}  // namespace cohort::compression
