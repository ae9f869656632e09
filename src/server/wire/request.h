#pragma once

#include <cohort/error.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "cluster/work_board.h"

namespace cohort::server {

/// What a worker and a parameter server say to each other, whichever way it travels.
///
/// Vocabulary. A server holds one *shard*: a segment of the dense floats of the model, and a range
/// of rows of every *table* (a parameter of which each step touches few rows). Its *version* counts
/// its updates. A *push* brings one worker's gradients, or the change of its parameters (*delta*);
/// a *pull* fetches the parameters. An *exchange* may do both, and fetch the next piece of work
/// with them (a *claim*), so a step is one round trip.
///
/// There is one type of request, from the worker to the shard, and one of reply, back to it:
///
///   Exchange           what a strategy asks of all servers at once (client/exchange.h)
///     : ExchangeHead   what each of them is told alike
///   Request            one server's: kind, header, its part of rows and work
///     RequestHeader
///       : ExchangeHead
///   Reply              one server's answer: header, rows, what was pulled
///     ReplyHeader      the part of it that the shard decides
///   ExchangeReply      what all servers' replies come to, for the strategy (client/exchange.h)
///
/// A link writes a Request as bytes (wire.h), the server's door reads the same Request from them
/// and says where its dense floats are, and the shard takes that.

/// What a request is about. Only exchanges go to the shard; the rest is said now and then, by gRPC
/// (but for `leave` and `step_out`, which come the way exchanges do). What is "followed by" something has it in Request::rest.
enum class RequestKind : std::uint32_t {
  exchange,
  leave,        ///< The worker is gone for good: its work goes to others.
  step_out,     ///< It leaves this group, and comes to the next with the work it has taken.
  hello,        ///< Followed by a Hello.
  look,         ///< Is there a model, and how large?
  initialise,   ///< Followed by the number of floats that come, and a ModelMessage without.
  read,         ///< The model, as a ModelMessage; followed by where its floats go, or nothing.
  replica,      ///< From another server, followed by a ReplicaMessage.
  give_part,    ///< Followed by a ModelPart of the first model, with its floats.
  read_part,    ///< Followed by a ModelPart of the model that was read; the reply has its floats.
  remember,     ///< The reply has what the server's codec for this worker remembers.
  recall,       ///< Followed by such, and by the parameters that the worker has, or nothing.
  lost_worker,  ///< From server 0: the worker is gone. What is the newest push that has come of it?
};
inline constexpr RequestKind kLastRequestKind = RequestKind::lost_worker;

/// What one exchange asks of every server alike: a set of parts, and the numbers they need. Plain
/// data.
///
///   part    with it may stand         which means
///   push    pull, claim, hold, …      here are gradients or a delta, and rows
///   pull    push, apply, exact, …     send the dense parameters as they are afterwards
///   claim   any, or nothing           server 0: send the next piece of work with the reply
///   hold    push, in sync             sum up, tell the norm, wait with the update
///   apply   anything but push, sync   now make the update of what was held
struct ExchangeHead {
  bool push : 1 = false;
  bool pull : 1 = false;
  bool claim : 1 = false;
  bool hold : 1 = false;
  bool apply : 1 = false;
  bool want_norm : 1 = false;     ///< push: tell the norm of the gradients as summed up.
  bool stop : 1 = false;          ///< The worker was asked to stop.
  bool save : 1 = false;          ///< push in sync: a checkpoint of what comes of it is wanted.
  bool finished : 1 = false;      ///< The worker will push no more.
  bool exact : 1 = false;         ///< pull: plain also where what travels is compressed.
  std::uint16_t no_part : 6 = 0;  ///< Bits of no meaning; a message that has one is corrupt.

  double lr = 0;     ///< push: of the update (not of deltas); where it is held, that of `apply`.
  double loss = 0;   ///< push in sync: the worker's share of the mean loss.
  double scale = 1;  ///< apply: gradients are multiplied by it.

  /// Whether server 0 alone has anything to do.
  bool only_claims() const { return claim && !push && !pull && !finished; }
  /// Leaves of it what a server has to do once, if the exchange is made again.
  void keep_push_only() { pull = claim = want_norm = stop = save = finished = false; }
};

/// What a request begins with: who asks, and for what. Plain data: it is written to shared memory
/// as it is, and sent as bytes.
struct RequestHeader : ExchangeHead {
  std::int64_t generation = 0;    ///< Of the membership: which group of workers this is of.
  std::int32_t worker = 0;        ///< Its rank in that group, which is all that servers know it by.
  std::int32_t again_worker = 0;  ///< See again_generation: the worker there.
  std::uint64_t sequence = 0;     ///< Of pushes: 1, 2, 3, … per worker and server.
  std::uint64_t version = 0;      ///< That the worker's parameters had.
  /// push: the group that it was first made in, where its answer was lost, and it is made again
  /// with the number it had there. It is applied where it was not, and waits for nobody. 0: it is a
  /// push of this group.
  std::int64_t again_generation = 0;

  bool is_again() const { return again_generation != 0; }
};

/// A header that says only whose it is.
inline RequestHeader header_from(std::int64_t generation, int worker) {
  RequestHeader header;
  header.generation = generation;
  header.worker = worker;
  return header;
}

/// What a server answers, whatever else the reply brings. Plain data, like RequestHeader. Fields
/// that a request does not ask for stay as they are here.
struct ReplyHeader {
  std::uint64_t version = 0;    ///< Of the parameters that were pulled.
  std::uint64_t staleness = 0;  ///< Updates others made since the worker's last pull.
  bool applied = false;         ///< The push went into an update, or will go into the next.
  bool dropped = false;         ///< It was late, or not finite, and left out.
  bool duplicate = false;       ///< It had come before; it was not applied again.
  bool stop = false;            ///< Somebody was asked to stop.
  bool save = false;            ///< sync: somebody wants a checkpoint.
  std::int32_t diverged_rank =
      -1;                     ///< sync: a worker whose loss or push is not finite; not applied.
  double loss = 0;            ///< sync: the sum of all workers' losses.
  double square_sum = 0;      ///< Of this shard's gradients as summed up, where wanted.
  double waited_seconds = 0;  ///< The time this request waited for other workers.
  bool has_model = false;     ///< look: there is one,
  std::uint64_t model_floats = 0;  ///< with so many floats, slots included.
  bool claim_end = false;          ///< There is no work left.
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
  std::uint32_t width = 0;  ///< Floats of a row, as the message has it; where it was read from one.
};

/// A request to one server. Everything in it but the lists themselves is a view of memory that
/// stays valid until it was answered. Floats may change meanwhile, where they are in memory that
/// their worker shares: they are then what it has pushed. What is checked, because memory is read or
/// written by it, does not: the door keeps a copy of that (kept_rows, kept_message).
///
///                   worker              door                            shard
///   header, lists   fills them in       as they were read               uses them
///   encoded, rest   encoded             rest: all behind the lists;     encoded
///                                       encoded: that, of a codec
///   dense floats    in its memory       dense, pull_into: where         reads and writes them
///   answers         waits at its link   answer, refuse                  calls one of them
struct Request {
  RequestKind kind = RequestKind::exchange;
  std::uint64_t number = 0;  ///< gRPC: the same in a request that is made again; otherwise never.
  RequestHeader header = {};

  std::vector<RowsPushed> rows = {};         ///< push.
  std::vector<RowsWanted> rows_wanted = {};  ///< Served at once, whatever else waits.
  std::vector<cluster::Claim> pieces =
      {};  ///< A push that is made again: the work that is done by it.
  std::span<const std::byte> encoded = {};  ///< push: a message of the job's codec.
  std::span<const std::byte> rest = {};     ///< What followed in the message; see RequestKind.

  // What the server adds, before the shard takes it.

  std::span<const float> dense = {};  ///< push: the shard's segment, where it is not encoded.
  /// pull: where the dense segment goes. With compression, what the worker has now: the shard sends
  /// the encoded difference and leaves here what the worker has afterwards. A worker's first pull
  /// (at version 0) is plain.
  std::span<float> pull_into = {};
  /// Gets that message, where it has to travel; of plain pulls the floats as they are.
  std::vector<std::byte>* pull_encoded = nullptr;
  /// What `rows` and `rows_wanted`, and `encoded`, are views of where the worker could write others.
  std::vector<std::uint32_t> kept_rows = {};
  std::vector<std::byte> kept_message = {};
  /// Exactly one of them is called, once, on the thread that uses the shard. Neither may throw;
  /// both may submit the next request.
  std::function<void(const ReplyHeader&)> answer = {};
  std::function<void(const Error&)> refuse = {};

  /// Makes it a new exchange of nothing, in the room that its lists have.
  void clear() {
    kind = RequestKind::exchange;
    header = {};
    number = 0;
    rows.clear();
    rows_wanted.clear();
    pieces.clear();
    encoded = rest = {};
  }
};

/// One server's answer, as its worker gets it. Spans are views of the bytes it was read from, valid
/// until the next request to that server.
struct Reply {
  ReplyHeader header = {};
  std::uint64_t pulled_bytes = 0;    ///< That a pull costs on the wire, whichever way it went.
  std::span<const float> rows = {};  ///< Of all rows wanted, in their order.
  /// What followed in the message: by gRPC what was pulled, dense floats or a message of the codec;
  /// of other kinds what RequestKind says.
  std::span<const std::byte> rest = {};
  bool in_place = false;  ///< What was pulled is where it belongs already: in shared memory.
};

}  // namespace cohort::server
