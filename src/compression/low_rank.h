#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "compression/codec.h"

namespace cohort::compression {

/// Low-rank factors of the matrices in a vector of floats, by one step of power iteration a vector
/// (PowerSGD, Vogels et al. 2019). Of every matrix M
///
///   left = M · right,   left made orthonormal,   right = transposed M · left,   M ≈ left · right^T
///
/// where `right` starts from that of the vector before. Vocabulary: *left* and *right* are the
/// factors of all matrices one after the other, *plain* the floats that are in no matrix, or in one
/// so small that its factors would not be smaller. Each is a flat vector of its own, so that it can
/// travel, or be summed over ranks between the steps: as long as every rank has the same right and
/// the same left, the sum of the ranks' right is the right of the sum of their matrices.
class LowRank {
 public:
  /// Throws Error(invalid) for a rank below 1 or matrices that overlap or lie outside. Equal seeds
  /// make equal first factors.
  LowRank(const CodecShape& shape, std::int64_t rank, std::uint64_t seed);

  std::size_t left_size() const { return left_size_; }
  std::size_t right_size() const { return right_size_; }
  std::size_t plain_size() const { return plain_size_; }

  // The steps, in this order for every vector: project, orthonormalise, project_back, start_from.
  // Sums over ranks of left go before orthonormalise, of right after project_back.

  /// What the next project() starts from: any factors not all zero, best the last right.
  void start_from(std::span<const float> right);

  /// All that the next vectors' factors depend on besides the vectors. Ignored where it is that of
  /// another shape.
  CodecMemory memory() const;
  void recall(const CodecMemory& memory);

  /// left = M · right, of the right it starts from.
  void project(std::span<const float> values, std::span<float> left);
  void orthonormalise(std::span<float> left) const;
  /// right = transposed M · left.
  void project_back(std::span<const float> values, std::span<const float> left,
                    std::span<float> right) const;
  void gather_plain(std::span<const float> values, std::span<float> plain) const;

  /// The two factors of all matrices.
  struct Factors {
    std::span<const float> left;
    std::span<const float> right;
  };

  /// values += left · right^T.
  void add_product(const Factors& factors, std::span<float> values) const;
  /// values -= left · right^T; what is not finite becomes 0.
  void subtract_product(const Factors& factors, std::span<float> values) const;
  /// Sets the floats of the matrices to zero.
  void clear_matrices(std::span<float> values) const;

  /// Calls visit(part of values, part of plain) for every stretch of floats that travels plain.
  template <class Values, class Plain, class Visit>
  void for_each_plain(Values values, Plain plain, Visit&& visit) const {
    for (const Stretch& stretch : plain_) {
      const std::size_t count = stretch.end - stretch.begin;
      visit(values.subspan(stretch.begin, count), plain.first(count));
      plain = plain.subspan(count);
    }
  }

 private:
  struct Factored {
    MatrixShape shape;
    std::size_t left = 0;  // Where its factors begin.
    std::size_t right = 0;
  };
  struct Stretch {
    std::size_t begin = 0;
    std::size_t end = 0;
  };

  void add_matrix(const MatrixShape& shape);
  void replace_useless_start();

  std::size_t rank_;
  std::vector<Factored> matrices_;  // Those that are worth it, ascending.
  std::vector<Stretch> plain_;      // What is between them, ascending.
  std::size_t left_size_ = 0;
  std::size_t right_size_ = 0;
  std::size_t plain_size_ = 0;
  std::vector<float> start_;  // The right factors that the next project() multiplies by.
  std::uint64_t seed_;
  std::uint64_t vectors_ = 0;  // Projected so far.
};

/// What the factors are computed with (matrix_kernels.cc): products of a large matrix and a few
/// vectors, each in one pass over the matrix at the speed of memory. Every sum is made in an order
/// that depends on the sizes only, so that ranks with equal vectors have equal factors.

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
