#include "strategy/compression_trial.h"

#include <algorithm>
#include <utility>

namespace cohort {
namespace {

constexpr std::size_t kTimedSteps = 3;
constexpr double kWorthIt = 0.9;

}  // namespace

CompressionTrial::CompressionTrial(std::vector<std::string> kinds)
    : kinds_(std::move(kinds)), recorded_(kinds_.size()) {}

void CompressionTrial::record(double seconds) {
  if (!std::exchange(warm_, true)) return;
  recorded_[current_].push_back(seconds);
  if (recorded_[current_].size() < kTimedSteps) return;
  ++current_;
  warm_ = false;
}

std::vector<double> CompressionTrial::seconds() const {
  std::vector<double> medians;
  for (std::vector<double> times : recorded_) {
    const auto middle = times.begin() + kTimedSteps / 2;
    std::nth_element(times.begin(), middle, times.end());
    medians.push_back(*middle);
  }
  return medians;
}

std::size_t CompressionTrial::pick(const std::vector<double>& seconds) {
  const auto fastest = std::min_element(seconds.begin(), seconds.end());
  if (*fastest > kWorthIt * seconds.front()) return 0;
  return static_cast<std::size_t>(fastest - seconds.begin());
}

}  // namespace cohort
