#include "gossip/push_sum.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/vectorize.h"

namespace cohort::gossip {
namespace {

// A block of the own model, before and after, stays in the first cache while all that has arrived
// passes by.
constexpr std::size_t kBlock = 2048;
constexpr std::size_t kLanes = 16;

// Sums in independent lanes, because the compiler may not reorder a sum of floats by itself.
using Lanes = std::array<float, kLanes>;

double sum(const Lanes& lanes) {
  double total = 0;
  for (const float lane : lanes) total += lane;
  return total;
}

// What the kernels do to one coordinate: they add this share of the difference. `count` is a
// multiple of the lanes.
COHORT_VECTORIZE void add_share(float* merged, const float* own, const float* other,
                                std::size_t count, float share, float* lanes) {
  for (std::size_t i = 0; i < count; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const float difference = other[i + lane] - own[i + lane];
      merged[i + lane] += share * difference;
      lanes[lane] += difference * difference;
    }
  }
}

COHORT_VECTORIZE void add_share_where_present(float* own, const float* other, std::size_t count,
                                              float share, float* lanes, float* norm_lanes) {
  for (std::size_t i = 0; i < count; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const float present = other[i + lane] != 0 ? 1.0F : 0.0F;
      const float before = own[i + lane];
      const float difference = present * (other[i + lane] - before);
      own[i + lane] = before + share * difference;
      lanes[lane] += difference * difference;
      norm_lanes[lane] += present * before * before;
    }
  }
}

COHORT_VECTORIZE void add_squares(const float* values, std::size_t count, float* lanes) {
  for (std::size_t i = 0; i < count; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] += values[i + lane] * values[i + lane];
    }
  }
}

// A block that ends in the middle of the lanes is filled up with zeros, which change no sum.
struct Padded {
  alignas(64) std::array<float, kBlock> values;

  static std::size_t size_of(std::size_t count) { return (count + kLanes - 1) / kLanes * kLanes; }

  void take(std::span<const float> block) {
    std::ranges::copy(block, values.begin());
    std::fill(values.begin() + static_cast<std::ptrdiff_t>(block.size()),
              values.begin() + static_cast<std::ptrdiff_t>(size_of(block.size())), 0.0F);
  }
};

// `values` itself where its size is a multiple of the lanes, otherwise its padded copy.
const float* padded(std::span<const float> values, Padded& copy) {
  if (values.size() % kLanes == 0) return values.data();
  copy.take(values);
  return copy.values.data();
}

/// Of two norms, by their squares; 0 where the first is.
double ratio(double square_sum, double of_square_sum) {
  return square_sum > 0 ? std::sqrt(square_sum / std::max(of_square_sum, 1e-30)) : 0;
}

template <class Visit>
void for_each_block(std::size_t size, Visit&& visit) {
  for (std::size_t begin = 0; begin < size; begin += kBlock) {
    visit(begin, std::min(kBlock, size - begin));
  }
}

}  // namespace

// own = sum of weight · model over itself and all that have arrived, divided by the sum of the
// weights; written as own += share · (other - own), so that models that agree stay as they are to
// the bit. All that have arrived go through one block after the other: the own model is read and
// written once, however many there are.
Merged merge_models(std::span<float> own, double weight, std::span<const WeightedModel> arrived) {
  Merged merged{.weight = weight};
  for (const WeightedModel& model : arrived) merged.weight += model.weight;
  std::vector<double> differences(arrived.size());
  double norm = 0;
  Padded before;
  Padded after;
  Padded other;
  for_each_block(own.size(), [&](std::size_t begin, std::size_t count) {
    const auto block = own.subspan(begin, count);
    const std::size_t lanes_count = Padded::size_of(count);
    before.take(block);
    after = before;
    Lanes lanes{};
    add_squares(before.values.data(), lanes_count, lanes.data());
    norm += sum(lanes);
    for (std::size_t i = 0; i < arrived.size(); ++i) {
      lanes = {};
      const auto share = static_cast<float>(arrived[i].weight / merged.weight);
      add_share(after.values.data(), before.values.data(),
                padded(arrived[i].values.subspan(begin, count), other), lanes_count, share,
                lanes.data());
      differences[i] += sum(lanes);
    }
    std::copy_n(after.values.begin(), count, block.begin());
  });
  for (const double difference : differences) {
    merged.distance += ratio(difference, norm) / static_cast<double>(differences.size());
  }
  return merged;
}

// The same of those coordinates that the message has; the others of the message are zero, which
// therefore means absent. (So a coordinate that has become exactly zero cannot be told.)
Merged merge_coordinates(std::span<float> own, double weight, const WeightedModel& arrived) {
  const double total = weight + arrived.weight;
  const auto share = static_cast<float>(arrived.weight / total);
  double difference = 0;
  double norm = 0;
  Padded mine;
  Padded other;
  for_each_block(own.size(), [&](std::size_t begin, std::size_t count) {
    const auto block = own.subspan(begin, count);
    mine.take(block);
    Lanes lanes{};
    Lanes norm_lanes{};
    add_share_where_present(mine.values.data(), padded(arrived.values.subspan(begin, count), other),
                            Padded::size_of(count), share, lanes.data(), norm_lanes.data());
    std::copy_n(mine.values.begin(), count, block.begin());
    difference += sum(lanes);
    norm += sum(norm_lanes);
  });
  return {.weight = total, .distance = ratio(difference, norm)};
}

}  // namespace cohort::gossip
