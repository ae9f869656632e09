#include "strategy/allreduce/compression_trial.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace cohort::strategy {
namespace {

constexpr int kTimedSteps = 3;      // Of each way, after one to warm up.
constexpr double kHopeless = 2;     // So many times plain's time: given up with the first step.
constexpr double kMostLost = 0.02;  // Of what all steps of the run take plain.
constexpr double kWorthIt = 0.9;    // Of plain's time: what a codec must beat to be picked.

}  // namespace

CompressionTrial::CompressionTrial(std::vector<std::string> kinds, std::int64_t steps)
    : kinds_(std::move(kinds)),
      steps_(static_cast<double>(steps)),
      shortest_(kinds_.size(), std::numeric_limits<double>::infinity()) {}

// `current_` moves on when a way has had its steps or will not win, and to the end when too much is
// lost. Plain has its turn first, so shortest_[0] is known when another way is compared with it.
void CompressionTrial::record(double seconds) {
  ++recorded_;
  const bool is_plain = current_ == 0;
  if (recorded_ > 1) shortest_[current_] = std::min(shortest_[current_], seconds);
  if (!is_plain) lost_ += std::max(0.0, seconds - shortest_[0]);
  if (recorded_ > kTimedSteps || (!is_plain && will_not_win(seconds))) {
    ++current_;
    recorded_ = 0;
  }
  if (lost_ > kMostLost * steps_ * shortest_[0]) current_ = kinds_.size();
}

bool CompressionTrial::will_not_win(double seconds) const {
  return seconds > shortest_[0] * (recorded_ == 1 ? kHopeless : 1);
}

std::size_t CompressionTrial::pick() const {
  const auto fastest = std::ranges::min_element(shortest_);
  if (*fastest > kWorthIt * shortest_.front()) return 0;
  return static_cast<std::size_t>(fastest - shortest_.begin());
}

}  // namespace cohort::strategy
