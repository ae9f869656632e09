#pragma once

// The rules of a server written down as plainly as possible, to compare Shard with.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "server/shard/shard.h"

namespace cohort::server {

/// One push for a PlainServer: a gradient or delta for every number, or nothing where the number is
/// in a row that was not pushed.
struct PlainPush {
  int worker = 0;
  std::uint64_t version = 0;
  double lr = 0;
  bool finished = false;
  std::vector<std::optional<double>> values = {};
};

/// A parameter server as its rules read: one number after the other, in double, with SGD with
/// momentum. What Shard does must come out the same.
class PlainServer {
 public:
  PlainServer(const ShardRules& rules, std::vector<double> parameters)
      : rules_(rules),
        parameters_(std::move(parameters)),
        momentum_(parameters_.size()),
        finished_(static_cast<std::size_t>(rules.workers)) {}

  enum class Fate { waits, applied, kept, dropped };

  Fate push(const PlainPush& push) {
    if (push.finished) finished_[static_cast<std::size_t>(push.worker)] = true;
    const std::uint64_t version = version_;
    const bool late =
        rules_.consistency == ShardRules::Consistency::quorum && version_ > push.version;
    if (late && rules_.drop_late) {
      was_dropped_.insert(push.worker);
    } else {
      pending_.push_back(push);
      lr_ = rules_.deltas ? rules_.optimizer.lr : push.lr;
    }
    if (!late) waiting_.insert(push.worker);
    const std::size_t expected = waiting_.size() + workers_to_come();
    std::size_t needed = 1;
    if (rules_.consistency == ShardRules::Consistency::sync) needed = expected;
    if (rules_.consistency == ShardRules::Consistency::quorum) {
      needed = std::min(expected, static_cast<std::size_t>(rules_.quorum));
    }
    if (!pending_.empty() && pending_.size() >= needed) update();
    if (late) return rules_.drop_late ? Fate::dropped : Fate::kept;
    return version_ > version ? Fate::applied : Fate::waits;
  }

  std::uint64_t version() const { return version_; }
  const std::vector<double>& parameters() const { return parameters_; }

 private:
  std::size_t workers_to_come() const {
    std::size_t count = 0;
    for (int worker = 0; worker < rules_.workers; ++worker) {
      const bool finished = finished_[static_cast<std::size_t>(worker)];
      if (!finished && !waiting_.contains(worker) && !was_dropped_.contains(worker)) ++count;
    }
    return count;
  }

  bool sync() const { return rules_.consistency == ShardRules::Consistency::sync; }

  /// Of a step.
  double share() const { return sync() ? 1 : static_cast<double>(pending_.size()) / rules_.parts; }

  double factor(const PlainPush& push) const {
    double factor = 1;
    if (!sync()) {
      const auto staleness = static_cast<double>(version_ - push.version);
      if (rules_.weight == ShardRules::Weight::inverse && staleness > 0) factor = 1 / staleness;
      if (rules_.weight == ShardRules::Weight::power) {
        factor = 1 / std::pow(1 + staleness, rules_.weight_power);
      }
    }
    const int parts = sync() ? rules_.workers : rules_.parts;
    return (rules_.deltas ? -factor / parts : factor) / share();
  }

  void update() {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      std::optional<double> gradient;
      for (const PlainPush& push : pending_) {
        if (push.values[i]) gradient = gradient.value_or(0) + factor(push) * *push.values[i];
      }
      if (!gradient) continue;
      const double stays = std::pow(rules_.optimizer.momentum, share());
      const double enters = (1 - stays) / (1 - rules_.optimizer.momentum);
      momentum_[i] = momentum_[i] * stays + enters * *gradient;
      parameters_[i] -= lr_ * share() * momentum_[i];
    }
    ++version_;
    pending_.clear();
    waiting_.clear();
    was_dropped_.clear();
  }

  ShardRules rules_;
  std::vector<double> parameters_;
  std::vector<double> momentum_;
  std::vector<bool> finished_;
  std::vector<PlainPush> pending_;
  std::set<int> waiting_;      // Those whose push is not late.
  std::set<int> was_dropped_;  // Since the last update.
  double lr_ = 0;              // Of the newest push that was not dropped.
  std::uint64_t version_ = 0;
};

}  // namespace cohort::server
