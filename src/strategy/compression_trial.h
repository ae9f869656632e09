#pragma once

#include <string>
#include <vector>

namespace cohort {

/// Tries ways to send gradients for a few steps each and then picks the fastest. Steps are counted
/// by record(), so all ranks try the same in the same step; the times they pick by they must agree
/// on first.
class CompressionTrial {
 public:
  /// The first is the plain way.
  explicit CompressionTrial(std::vector<std::string> kinds);

  const std::vector<std::string>& kinds() const { return kinds_; }
  bool done() const { return current_ == kinds_.size(); }

  /// What to use in the next step; not when done.
  const std::string& current() const { return kinds_[current_]; }

  /// What the step with current() cost. The first of a kind is for warming up.
  void record(double seconds);

  /// By kind, the median of what was recorded; when done.
  std::vector<double> seconds() const;

  /// The index of the fastest, or 0 (plain) where it saves less than a tenth of plain.
  static std::size_t pick(const std::vector<double>& seconds);

 private:
  std::vector<std::string> kinds_;
  std::vector<std::vector<double>> recorded_;
  std::size_t current_ = 0;
  bool warm_ = false;
};

}  // namespace cohort
