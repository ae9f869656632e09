#pragma once

#include "server/shard/shard.h"
#include "server/wire/request.h"

namespace cohort {

/// Throws Error(cancelled) for a message of another group of workers than the one served.
void check_epoch(const RequestHeader& header, std::int64_t epoch);

/// Throws Error(invalid) for a shape that is none.
void check_shape(const ShardShape& shape);

/// Checks what can be seen from the request alone: worker, flags that contradict each other, sizes,
/// tables and rows. Throws Error naming the worker and what would be valid.
void check_request(const Request& request, const ShardRules& rules, const ShardShape& shape);

}  // namespace cohort
