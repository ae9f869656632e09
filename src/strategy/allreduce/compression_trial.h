#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cohort::strategy {

/// Tries ways to send gradients for a few steps each and then picks one. Everything follows from
/// what was recorded, so ranks that record the same times try and pick the same.
///
/// The rule. Plain has its turn first, which costs nothing: a step to warm up, then some that are
/// timed. Every other way is given up with its first step that shows that it will not win: a first
/// one that takes twice as long as plain, or a timed one that is longer than plain's. What the
/// other ways have taken longer than plain is *lost*, and when that is a fiftieth of what all steps
/// of the run take plain, nothing more is tried. So a run that ends up plain is as good as plain.
class CompressionTrial {
 public:
  /// The first of `kinds` is the plain way; the run has `steps` more steps.
  CompressionTrial(std::vector<std::string> kinds, std::int64_t steps);

  const std::vector<std::string>& kinds() const { return kinds_; }
  bool done() const { return current_ == kinds_.size(); }

  /// What to use in the next step; not when done.
  const std::string& current() const { return kinds_[current_]; }

  /// What the step with current() took: the slowest rank's time, the same on all.
  void record(double seconds);

  /// By kind, the shortest timed step (what disturbs a step only makes it longer), or infinity
  /// where none was timed.
  const std::vector<double>& seconds() const { return shortest_; }

  /// The index of the fastest, or 0 (plain) where it saves less than a tenth of plain.
  std::size_t pick() const;

 private:
  bool will_not_win(double seconds) const;

  std::vector<std::string> kinds_;
  double steps_;
  std::vector<double> shortest_;
  std::size_t current_ = 0;
  int recorded_ = 0;  // Of the current way.
  double lost_ = 0;
};

}  // namespace cohort::strategy
