#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "collective/schedule.h"

namespace cohort {

/// The flat gradients cut into pieces that travel one by one, in the order in which the backward
/// pass completes them: from the last parameter to the first. Bucket 0 also takes the `tail` floats
/// that stand behind the gradients, since they are known before the backward pass begins.
///
/// Parameters that travel *apart*, in a way of their own, have a bucket each.
struct GradientBuckets {
  std::vector<Segment> segments;        ///< In order of travel; together all floats, once.
  std::vector<std::size_t> bucket_of;   ///< By parameter.
  std::vector<std::size_t> parameters;  ///< How many parameters each bucket waits for.
  /// The one parameter of a bucket that travels apart; nothing for the others.
  std::vector<std::optional<std::size_t>> apart;

  /// `offsets`: where each parameter's gradient begins, ascending; `size`: of all gradients;
  /// `travels_apart`: by parameter, empty where none does.
  static GradientBuckets of(std::span<const std::size_t> offsets, std::size_t size,
                            std::size_t tail, std::size_t bucket_bytes,
                            const std::vector<bool>& travels_apart = {});
};

}  // namespace cohort
