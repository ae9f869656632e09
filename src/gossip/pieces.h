#pragma once

namespace cohort {

/// Of how many pieces of work gradients are, and the learning rates of the steps that these belong
/// to, added up: whoever applies a sum of gradients knows by it which share of a step it is, and
/// with which rate.
struct Pieces {
  double count = 0;
  double rates = 0;

  Pieces& operator+=(const Pieces& other) {
    count += other.count;
    rates += other.rates;
    return *this;
  }

  /// The mean rate; `none` where there are no pieces.
  double rate_or(double none) const { return count > 0 ? rates / count : none; }
};

}  // namespace cohort
