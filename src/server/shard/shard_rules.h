#pragma once

#include <cohort/job.h>

#include <cstddef>
#include <cstdint>
#include <limits>

#include "server/wire/request.h"
#include "server/wire/shard_shape.h"

namespace cohort::server {

/// How a server turns pushes into updates. Every server of a run has the same rules, made of the
/// job's (strategy/servers/server_rule.cc).
struct ShardRules {
  /// When an update is made of the pushes that have come:
  ///
  ///   sync     of all workers that have not finished
  ///   async    of every push at once ("bounded" is async whose claims may wait)
  ///   quorum   of `quorum` pushes, or of all that can still come where those are fewer
  enum class Consistency { sync, async, quorum };
  /// What a stale push is multiplied by; see weight_of().
  enum class Weight { none, inverse, power };

  int workers = 1;
  int parts = 1;  ///< Of a step's batch, where pushes are of such parts (async, quorum).
  Consistency consistency = Consistency::sync;
  int quorum = 1;  ///< Of more than there are workers it is all of them.
  bool drop_late = false;
  /// quorum: a late push waits for the update it goes into, as others do. Only where this is the
  /// one server: with several, workers could then wait for each other in a circle.
  bool late_waits = false;
  Weight weight = Weight::none;
  double weight_power = 0.5;
  bool deltas = false;  ///< Pushes are changes of parameters, not gradients.
  /// The most that the job's schedule ever gives: no push of gradients has a larger rate.
  double most_lr = std::numeric_limits<double>::infinity();
  OptimizerOptions optimizer;  ///< Of the server; for deltas the outer one.
  CompressionOptions compression;

  /// What a push of this staleness is multiplied by: 1/staleness (1 for 0), (1+staleness)^-a.
  double weight_of(std::uint64_t staleness) const;
};

/// Throws Error(invalid) for rules no server can follow.
void check_rules(const ShardRules& rules);

/// Which share of a step an update with so many pushes is.
double share_of(const ShardRules& rules, std::size_t pushes);

/// What the sum of so many weighted pushes is multiplied by to have the size of a whole step's.
double factor_of(const ShardRules& rules, std::size_t pushes);

/// Throws Error(cancelled) for a message of another group of workers than the one served.
void check_generation(const RequestHeader& header, std::int64_t generation);

/// Checks what can be seen from the request alone: worker, flags that contradict each other, sizes,
/// tables and rows. Throws Error naming the worker and what would be valid. What depends on what
/// came before (sequence numbers, versions, what is held) is the shard's to check.
void check_request(const Request& request, const ShardRules& rules, const ShardShape& shape);

}  // namespace cohort::server
