#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "cluster/work_board.h"
#include "server/wire/request.h"

namespace cohort::server {

/// What a worker wants of all servers at once: what each of them is told (ExchangeHead), and what
/// is cut into their parts. Dense floats are not in it: they stand in ServerClient::outgoing().
struct Exchange : ExchangeHead {
  /// Of one table, by their number in the whole table.
  struct Rows {
    std::vector<std::uint32_t> rows;  ///< Ascending, each once.
    std::vector<float> values;
  };
  std::vector<Rows> rows = {};  ///< push: of every table; or empty.
  std::vector<cluster::Claim> pieces =
      {};  ///< push: the work it is of; told when it is made again.
};

/// What all servers together have answered.
struct ExchangeReply {
  double loss = 0;              ///< sync: the sum of all workers' losses.
  bool stop = false;            ///< Somebody was asked to stop.
  bool save = false;            ///< Somebody who has pushed wants a checkpoint of it.
  int diverged_rank = -1;       ///< sync: a worker whose loss, or push to a server, is not finite.
  double square_sum = 0;        ///< Over all shards.
  std::uint64_t staleness = 0;  ///< The largest of the shards'.
  bool dropped = false;         ///< By at least one shard.
  double waited_seconds = 0;    ///< The longest wait for other workers.
  std::optional<cluster::Claim> claim =
      {};  ///< Nothing: there is no work left (where one was wanted).
};

/// A push that not all servers have answered, by server, as bytes: each of them may have applied it
/// or not. Empty: there is none. It is made again in the next group of workers.
using UnansweredPush = std::vector<std::vector<std::byte>>;

}  // namespace cohort::server
