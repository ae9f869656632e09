#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace cohort {

/// One push's part of a sum.
struct Contribution {
  std::span<const float> values;
  double weight = 1;
};

/// The weighted sum of contributions of equal size, in their order, made piece by piece so that a
/// piece is still in the cache when it is used. What all contributions are multiplied by alike is
/// left to whoever uses the sum: so most sums need no multiplication, and one contribution alone is
/// not even copied.
class Aggregate {
 public:
  /// There is at least one contribution; they stay where they are for as long as this lives.
  explicit Aggregate(std::span<const Contribution> contributions);

  std::size_t size() const { return contributions_.front().values.size(); }

  /// The sum is scale() times what piece() gives.
  double scale() const { return scale_; }

  /// `count` floats from `begin`: in `scratch`, or where they stand anyway.
  std::span<const float> piece(std::size_t begin, std::size_t count,
                               std::span<float> scratch) const;

 private:
  std::span<const Contribution> contributions_;
  double scale_ = 1;
  bool equal_weights_ = true;
};

/// Whoever takes a sum in pieces takes this many floats at once: a piece, and what it updates,
/// stays in a core's own cache.
inline constexpr std::size_t kSumPiece = 16384;

/// Calls visit(begin, count) for every piece of `count` floats.
template <class Visit>
void for_each_piece(std::size_t count, Visit&& visit) {
  for (std::size_t begin = 0; begin < count; begin += kSumPiece) {
    visit(begin, std::min(kSumPiece, count - begin));
  }
}

/// into[i] += from[i] * weight. Both have the same size.
void add_weighted(std::span<float> into, std::span<const float> from, float weight);

}  // namespace cohort
