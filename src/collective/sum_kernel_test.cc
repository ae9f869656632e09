// Sums in the order of their sources, to the bit: of any number of sources, in place, and on memory
// that is not aligned.

#include "collective/sum_kernel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace cohort::collective {
namespace {

/// Numbers of very different size, so that another order of summing gives other bits.
std::vector<std::vector<float>> random_sources(std::size_t sources, std::size_t count) {
  std::mt19937 random(11);
  std::uniform_real_distribution<float> mantissa(-1, 1);
  std::uniform_int_distribution<int> exponent(-12, 12);
  std::vector<std::vector<float>> result(sources, std::vector<float>(count));
  for (auto& source : result) {
    for (float& x : source) x = std::ldexp(mantissa(random), exponent(random));
  }
  return result;
}

std::vector<float> sum_in_order(const std::vector<std::vector<float>>& sources) {
  std::vector<float> sum = sources.front();
  for (std::size_t s = 1; s < sources.size(); ++s) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += sources[s][i];
  }
  return sum;
}

std::vector<const float*> pointers(const std::vector<std::vector<float>>& sources) {
  std::vector<const float*> result;
  for (const auto& source : sources) result.push_back(source.data());
  return result;
}

TEST(SumKernel, SumsInTheOrderOfTheSources) {
  for (std::size_t count : {0, 1, 15, 16, 33, 1024, 3001}) {
    for (std::size_t number = 1; number <= 12; ++number) {
      const auto sources = random_sources(number, count);
      std::vector<float> out(count, 99);
      sum_of(out, pointers(sources));
      EXPECT_EQ(out, sum_in_order(sources)) << number << " sources of " << count;
    }
  }
}

TEST(SumKernel, TheResultMayReplaceAnySource) {
  for (std::size_t number = 1; number <= 12; ++number) {
    for (std::size_t replaced = 0; replaced < number; ++replaced) {
      auto sources = random_sources(number, 3001);
      const auto expected = sum_in_order(sources);
      sum_of(sources[replaced], pointers(sources));
      EXPECT_EQ(sources[replaced], expected) << "source " << replaced << " of " << number;
    }
  }
}

TEST(SumKernel, WorksOnMemoryThatIsNotAligned) {
  const auto sources = random_sources(2, 101);
  std::vector<float> into(sources[0].begin() + 1, sources[0].end());
  add_to(into, std::span(sources[1]).subspan(1));
  for (std::size_t i = 0; i < into.size(); ++i) {
    EXPECT_EQ(into[i], sources[0][i + 1] + sources[1][i + 1]);
  }
}

}  // namespace
}  // namespace cohort::collective
