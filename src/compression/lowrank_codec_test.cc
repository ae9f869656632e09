// Proves the kernels against plain loops, that matrices of low rank come through exactly, and that
// factors summed over ranks are those of the sum.

#include "compression/codecs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "compression/codec.h"
#include "compression/codec_test_support.h"
#include "compression/low_rank.h"

namespace cohort::compression {
namespace {

constexpr float kClose = 1e-4F;

struct Sizes {
  std::size_t rows;
  std::size_t columns;
  std::size_t rank;
};

/// Odd sizes, so that what is left over by lanes, groups of rows and groups of vectors is used.
const Sizes kSizes[] = {{1, 1, 1}, {3, 40, 2}, {37, 53, 4}, {64, 16, 5}, {19, 100, 9}};

TEST(MatrixKernels, ProductsAreThoseOfThePlainLoops) {
  for (const auto& [rows, columns, rank] : kSizes) {
    const auto matrix = normal_values(rows * columns, 1);
    const auto right = normal_values(rank * columns, 2);
    const auto left = normal_values(rank * rows, 3);
    std::vector<float> products(rank * rows), transposed(rank * columns);
    multiply({matrix.data(), rows, columns}, right, products);
    multiply_transposed({matrix.data(), rows, columns}, left, transposed);
    for (std::size_t k = 0; k < rank; ++k) {
      for (std::size_t i = 0; i < rows; ++i) {
        double sum = 0;
        for (std::size_t j = 0; j < columns; ++j) {
          sum += matrix[i * columns + j] * right[k * columns + j];
        }
        ASSERT_NEAR(products[k * rows + i], sum, kClose);
      }
      for (std::size_t j = 0; j < columns; ++j) {
        double sum = 0;
        for (std::size_t i = 0; i < rows; ++i) sum += matrix[i * columns + j] * left[k * rows + i];
        ASSERT_NEAR(transposed[k * columns + j], sum, kClose);
      }
    }
  }
}

TEST(MatrixKernels, OrthonormalVectorsAreThatAndUselessOnesZero) {
  constexpr std::size_t kLength = 50;
  auto vectors = normal_values(4 * kLength, 4);
  for (std::size_t i = 0; i < kLength; ++i) {
    vectors[2 * kLength + i] = 2 * vectors[i] - 3 * vectors[kLength + i];
  }
  orthonormalise(vectors, kLength);
  const auto vector = [&](std::size_t k) {
    return std::span<const float>(vectors).subspan(k * kLength, kLength);
  };
  for (const std::size_t k : {0UL, 1UL, 3UL}) {
    for (const std::size_t other : {0UL, 1UL, 3UL}) {
      EXPECT_NEAR(dot(vector(k), vector(other)), k == other ? 1 : 0, 1e-5);
    }
  }
  EXPECT_THAT(vector(2), ::testing::Each(0.0F)) << "a combination of the first two";
}

/// A matrix that is the sum of `rank` products of a column and a row, within floats that are not.
std::vector<float> low_rank_values(const CodecShape& shape, std::size_t rank, std::uint64_t seed) {
  auto values = normal_values(shape.count, seed);
  for (const auto& [offset, rows, columns] : shape.matrices) {
    const auto left = normal_values(rank * rows, seed + 1);
    const auto right = normal_values(rank * columns, seed + 2);
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < columns; ++j) {
        float sum = 0;
        for (std::size_t k = 0; k < rank; ++k) sum += left[k * rows + i] * right[k * columns + j];
        values[offset + i * columns + j] = sum;
      }
    }
  }
  return values;
}

void expect_close(const std::vector<float>& said, const std::vector<float>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(said[i], values[i], 1e-3) << i;
}

TEST(Lowrank, IsExactForMatricesOfItsRankOrLess) {
  const CodecShape shape{.count = 6000, .matrices = {{3, 50, 60}, {3100, 40, 70}}};
  const auto codec = make_lowrank_codec(shape, 4, 5);
  for (const std::size_t rank : {1UL, 4UL, 2UL, 4UL}) {
    const auto values = low_rank_values(shape, rank, 6 + rank);
    expect_close(decoded(*codec, message_of(*codec, values), shape.count), values);
  }
}

TEST(Lowrank, FindsItsWayBackFromNothing) {
  const CodecShape shape{.count = 3000, .matrices = {{0, 50, 60}}};
  const auto codec = make_lowrank_codec(shape, 4, 7);
  message_of(*codec, std::vector<float>(shape.count));
  auto values = low_rank_values(shape, 4, 8);
  expect_close(decoded(*codec, message_of(*codec, values), shape.count), values);
  const auto good = values;
  values[100] = std::nanf("");
  message_of(*codec, values);
  expect_close(decoded(*codec, message_of(*codec, good), shape.count), good);
}

/// The share of the matrix that a message leaves out.
double left_out(Codec& codec, const std::vector<float>& values) {
  const auto message = message_of(codec, values);
  auto rest = values;
  codec.subtract(message, rest);
  return std::sqrt(dot(rest, rest) / dot(values, values));
}

TEST(Lowrank, GetsBetterFromMessageToMessage) {
  const CodecShape shape{.count = 3000, .matrices = {{0, 50, 60}}};
  auto values = low_rank_values(shape, 4, 9);
  const auto noise = normal_values(shape.count, 10);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] += 0.7F * noise[i];
  const auto codec = make_lowrank_codec(shape, 4, 11);
  const double first = left_out(*codec, values);
  for (int round = 0; round < 5; ++round) left_out(*codec, values);
  EXPECT_LT(left_out(*codec, values), first * 0.95);
}

TEST(Lowrank, WhatWouldNotShrinkTravelsPlain) {
  const CodecShape shape{.count = 100, .matrices = {{0, 8, 8}, {64, 1, 36}}};
  const LowRank factors(shape, 4, 1);
  EXPECT_EQ(factors.left_size() + factors.right_size(), 0U) << "4 * (8 + 8) is not below 8 * 8";
  EXPECT_EQ(factors.plain_size(), 100U);
  const LowRank smaller(shape, 3, 1);
  EXPECT_EQ(smaller.left_size() + smaller.right_size() + smaller.plain_size(), 48 + 36U);
  const auto codec = make_lowrank_codec(shape, 4, 1);
  const auto values = normal_values(100, 12);
  EXPECT_EQ(decoded(*codec, message_of(*codec, values), 100), values);
}

TEST(Lowrank, FactorsSummedOverRanksAreThoseOfTheSum) {
  const CodecShape shape{.count = 3000, .matrices = {{0, 50, 60}}};
  const auto a = low_rank_values(shape, 2, 13);
  const auto b = low_rank_values(shape, 2, 20);
  LowRank one(shape, 4, 14), two(shape, 4, 14);
  std::vector<float> left(one.left_size()), left_two(one.left_size());
  one.project(a, left);
  two.project(b, left_two);
  for (std::size_t i = 0; i < left.size(); ++i) left[i] += left_two[i];
  one.orthonormalise(left);
  std::vector<float> right(one.right_size()), right_two(one.right_size());
  one.project_back(a, left, right);
  two.project_back(b, left, right_two);
  for (std::size_t i = 0; i < right.size(); ++i) right[i] += right_two[i];
  std::vector<float> sum(shape.count);
  one.add_product({left, right}, sum);
  for (std::size_t i = 0; i < sum.size(); ++i) ASSERT_NEAR(sum[i], a[i] + b[i], 1e-3);
}

TEST(Lowrank, RefusesMatricesThatOverlapOrLieOutside) {
  const auto made = [](std::vector<MatrixShape> matrices) {
    return error_of([&] { LowRank({.count = 100, .matrices = matrices}, 1, 1); });
  };
  EXPECT_EQ(made({{0, 10, 10}}), std::nullopt);
  EXPECT_EQ(made({{1, 10, 10}}), ErrorCode::invalid);
  EXPECT_EQ(made({{200, 1, 1}}), ErrorCode::invalid);
  EXPECT_EQ(made({{0, 5, 10}, {40, 5, 10}}), ErrorCode::invalid);
  EXPECT_EQ(made({{0, ~0UL, 2}}), ErrorCode::invalid);
  EXPECT_EQ(made({{0, 5, 0}}), ErrorCode::invalid);
}

TEST(Matrices, WithinAPartAreTheirWholeRows) {
  const std::vector<MatrixShape> all = {{10, 5, 10}, {70, 3, 10}};
  const auto shapes = [&](std::size_t begin, std::size_t end) {
    std::vector<std::vector<std::size_t>> found;
    for (const auto& [offset, rows, columns] : matrices_within(all, begin, end)) {
      found.push_back({offset, rows, columns});
    }
    return found;
  };
  using Shapes = std::vector<std::vector<std::size_t>>;
  EXPECT_EQ(shapes(0, 100), (Shapes{{10, 5, 10}, {70, 3, 10}}));
  EXPECT_EQ(shapes(10, 60), (Shapes{{0, 5, 10}}));
  EXPECT_EQ(shapes(15, 85), (Shapes{{5, 4, 10}, {55, 1, 10}}));
  EXPECT_EQ(shapes(21, 39), Shapes{}) << "no whole row";
  EXPECT_EQ(shapes(21, 40), (Shapes{{9, 1, 10}}));
  EXPECT_EQ(shapes(60, 70), Shapes{});
  EXPECT_EQ(shapes(80, 200), (Shapes{{0, 2, 10}}));
}

}  // namespace
}  // namespace cohort::compression
