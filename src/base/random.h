#pragma once

#include <cstdint>

namespace cohort {

/// Random numbers that are the same in every build on every machine: number i of a stream is a
/// function of (seed, stream, i) and uses nothing of the platform's library, whose distributions
/// differ between versions. What depends on them (the order of samples, generated datasets, first
/// weights of factors) is therefore the same in all workers and when a run is resumed. Streams of
/// one seed are independent for all practical purposes; take a stream for each thing that draws.
/// Not for secrets. One thread at a time.
///
/// It is splitmix64 (Steele, Lea and Flood 2014): a counter that grows by an odd constant, and a
/// function that mixes it, so skipping ahead costs nothing.
class Random {
 public:
  explicit Random(std::uint64_t seed, std::uint64_t stream = 0)
      : state_(mix(mix(seed) + kIncrement * (stream + 1))) {}

  std::uint64_t next() {
    state_ += kIncrement;
    return mix(state_);
  }

  /// As if next() had been called so often.
  void skip(std::uint64_t count) { state_ += kIncrement * count; }

  /// Even over 0 … limit-1; limit is above 0.
  std::uint64_t below(std::uint64_t limit) {
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(next()) * limit) >> 64);
  }

  /// Even over [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }

  /// Mean 0, deviation 1, and normal but for its tails, which end at 6: a sum of twelve, because
  /// logarithm and cosine differ in the last bit between libraries.
  double normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += uniform();
    return sum;
  }

 private:
  static constexpr std::uint64_t kIncrement = 0x9e3779b97f4a7c15;

  /// The splitmix64 finaliser: every bit of the result depends on every bit of `x`.
  static std::uint64_t mix(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }

  std::uint64_t state_;
};

}  // namespace cohort
