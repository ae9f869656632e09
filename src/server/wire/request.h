#pragma once

#include <cohort/error.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "cluster/work_board.h"

namespace cohort {

/// What a worker and a parameter server say to each other, whichever way it travels.
///
/// Vocabulary. A server holds one *shard*: a segment of the dense floats of the model, and a range
/// of rows of every *table* (a parameter of which each step touches few rows). Its *version* counts
/// its updates. A *push* brings one worker's gradients, or the change of its parameters (*delta*);
/// a *pull* fetches the parameters. One *request* may do both, and fetch the next piece of work
/// with them, so a step is one round trip.

/// Plain data: it is written to shared memory as it is, and sent as bytes.
struct RequestHeader {
  std::int64_t epoch = 0;  ///< Of the membership: which group of workers this is of.
  std::int32_t worker = 0;
  bool push = false;   ///< Dense gradients or delta, and rows.
  bool pull = false;   ///< Of the dense parameters.
  bool claim = false;  ///< Server 0: the worker's next piece of work is wanted with the reply.
  bool hold = false;   ///< sync push: sum up, tell the norm, wait with the update for `apply`.
  bool apply = false;  ///< sync: the update of what was held, gradients multiplied by `scale`.
  bool want_norm = false;
  bool stop = false;      ///< The worker was asked to stop.
  bool save = false;      ///< sync push: the worker wants a checkpoint of what comes of it.
  bool finished = false;  ///< The worker will push no more.
  bool exact = false;     ///< pull: plain also where what travels is compressed.
  bool returns = false;   ///< leave: the worker comes to the next group with what it has taken.
  std::uint64_t sequence = 0;  ///< Of pushes: 1, 2, 3, … per worker and server.
  std::uint64_t version = 0;   ///< That the worker's parameters had.
  double lr = 0;     ///< push: of the update (not of deltas); where it is held, that of `apply`.
  double loss = 0;   ///< sync: the worker's share of the mean loss.
  double scale = 1;  ///< apply.
  /// push: one of an earlier group whose answer was lost, made again with the number it had there.
  /// It is applied where it was not, and waits for nobody.
  std::int64_t again_epoch = 0;   ///< That group; 0: it is a push of this one.
  std::int32_t again_worker = 0;  ///< The worker there.

  bool is_again() const { return again_epoch != 0; }
};

struct ReplyHeader {
  std::uint64_t version = 0;        ///< Of the parameters that were pulled.
  std::uint64_t staleness = 0;      ///< Updates others made since the worker's last pull.
  bool applied = false;             ///< The push went into an update, or will go into the next.
  bool dropped = false;             ///< It was late and left out.
  bool duplicate = false;           ///< It had come before; it was not applied again.
  bool stop = false;                ///< Somebody was asked to stop.
  bool save = false;                ///< sync: somebody wants a checkpoint.
  std::int32_t diverged_rank = -1;  ///< sync: a worker whose loss is not finite; nothing applied.
  double loss = 0;                  ///< sync: the sum of all workers' losses.
  double square_sum = 0;            ///< Of this shard's gradients as summed up, where wanted.
  double held_seconds = 0;          ///< The time this request waited for other workers.
  bool has_model = false;           ///< look: there is one,
  std::uint64_t model_floats = 0;   ///< with so many floats, slots included.
  bool claim_end = false;           ///< There is no work left.
  std::int64_t claim_step = 0;
  std::int32_t claim_part = 0;
  std::uint64_t newest_push = 0;  ///< lost_worker: the number of the newest that has come; or 0.
};

/// Rows of a table, by their number in the whole table.
struct RowsPushed {
  std::uint32_t table = 0;
  std::span<const std::uint32_t> rows;  ///< Ascending, each once.
  std::span<const float> values;        ///< rows.size() rows.
};

struct RowsWanted {
  std::uint32_t table = 0;
  std::span<const std::uint32_t> rows;
  std::span<float> values;  ///< Where they go.
};

/// A request as a shard takes it: spans of memory that stays valid and unchanged until `answer` or
/// `refuse` was called (exactly one of them, once, on the thread that uses the shard). Neither may
/// throw; both may submit the next request.
struct Request {
  RequestHeader header;

  std::span<const float> dense;        ///< push: the shard's segment, where it is not encoded.
  std::span<const std::byte> encoded;  ///< push: a message of the job's codec instead.
  std::vector<RowsPushed> rows;        ///< push.
  std::vector<Claim> pieces;           ///< A push that is made again: the work that is done by it.

  /// pull: where the dense segment goes. With compression, what the worker has now: the shard sends
  /// the encoded difference and leaves here what the worker has afterwards. A worker's first pull
  /// (at version 0) is plain.
  std::span<float> pull_into;
  /// Gets that message, where it has to travel; of plain pulls the floats as they are.
  std::vector<std::byte>* pull_encoded = nullptr;
  std::vector<RowsWanted> rows_wanted;  ///< Served at once, whatever else waits.

  std::function<void(const ReplyHeader&)> answer;
  std::function<void(const Error&)> refuse;
};

}  // namespace cohort
