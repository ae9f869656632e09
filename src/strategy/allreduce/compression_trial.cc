#include "strategy/allreduce/compression_trial.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace cohort {
namespace {

constexpr int kTimedSteps = 3;
constexpr double kHopeless = 2;
constexpr double kMostLost = 0.02;
constexpr double kWorthIt = 0.9;

}  // namespace

CompressionTrial::CompressionTrial(std::vector<std::string> kinds, std::int64_t steps)
    : kinds_(std::move(kinds)),
      steps_(static_cast<double>(steps)),
      shortest_(kinds_.size(), std::numeric_limits<double>::infinity()) {}

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

}  // namespace cohort
