#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>

namespace cohort::cluster {

/// What parameter servers have to say at the end of a run. Servers write it, launchers keep it for
/// them and summaries print it; so it stands below all three and knows none of them.

/// Counts of what became of the pushes. Plain data: it stands in memory that outlives the server,
/// and its counts with it.
struct PushCounts {
  /// Pushes by their staleness; the last place has all above.
  static constexpr std::size_t kStalenessPlaces = 130;

  std::uint64_t applied = 0;     ///< In an update, or in the sum that goes into the next.
  std::uint64_t dropped = 0;     ///< Late, not finite, or of a step that diverged or broke off.
  std::uint64_t not_finite = 0;  ///< Of those dropped: with a number that is none.
  std::uint64_t duplicates = 0;  ///< Came again and were not applied again.
  /// Never came, though later ones did, or others of the servers have it.
  std::uint64_t missing = 0;
  std::uint64_t staleness_max = 0;
  double staleness_sum = 0;
  std::array<std::uint64_t, kStalenessPlaces> staleness = {};
  /// The sum of a hash of every push that was applied, whatever their order: servers that have the
  /// same have applied the same pushes, each as often.
  std::uint64_t fingerprint = 0;

  void count_staleness(std::uint64_t of_push) {
    ++staleness[std::min<std::size_t>(of_push, kStalenessPlaces - 1)];
    staleness_max = std::max(staleness_max, of_push);
    staleness_sum += static_cast<double>(of_push);
  }

  /// A copy that costs no more than the places that are in use: those above `staleness_max` are
  /// zero in both.
  void become(const PushCounts& other) {
    const auto used =
        std::min<std::size_t>(std::max(staleness_max, other.staleness_max), kStalenessPlaces - 1) +
        1;
    applied = other.applied;
    dropped = other.dropped;
    not_finite = other.not_finite;
    duplicates = other.duplicates;
    missing = other.missing;
    staleness_max = other.staleness_max;
    staleness_sum = other.staleness_sum;
    std::copy_n(other.staleness.begin(), used, staleness.begin());
    fingerprint = other.fingerprint;
  }

  /// How many pushes had which staleness.
  std::map<std::uint64_t, std::uint64_t> histogram() const {
    std::map<std::uint64_t, std::uint64_t> found;
    for (std::size_t place = 0; place < staleness.size(); ++place) {
      if (staleness[place] > 0) found[place] = staleness[place];
    }
    return found;
  }

  /// Counts of a server that took over from another without what that one had counted.
  void add(const PushCounts& more) {
    applied += more.applied;
    dropped += more.dropped;
    not_finite += more.not_finite;
    duplicates += more.duplicates;
    missing += more.missing;
    staleness_max = std::max(staleness_max, more.staleness_max);
    staleness_sum += more.staleness_sum;
    for (std::size_t i = 0; i < staleness.size(); ++i) staleness[i] += more.staleness[i];
    fingerprint += more.fingerprint;
  }
};

/// What one server reports.
struct ServerReport {
  std::uint64_t version = 0;  ///< Of its part of the model: the number of its updates.
  PushCounts counts;
};

}  // namespace cohort::cluster
