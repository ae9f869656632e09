#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cluster/work_board.h"
#include "server/door/run_server.h"
#include "server/shard/shard.h"

namespace cohort::server {

/// A request under way in a server, whichever way it came. Exactly one of its functions is called,
/// once, on the desk's thread; then the desk has forgotten it.
class Visit {
 public:
  virtual ~Visit() = default;
  virtual void answer(const ReplyHeader& reply) = 0;
  virtual void refuse(const Error& error) = 0;
};

/// What becomes of the work that a worker has taken and not pushed, when it leaves.
enum class LeftWork {
  handed_out,  ///< To others.
  kept,        ///< For itself: it comes to the next group, or that group finds out.
  done,        ///< Another server has the push of it.
};
/// By the word with which the worker goes.
inline LeftWork work_left_by(RequestKind kind) {
  return kind == RequestKind::step_out ? LeftWork::kept : LeftWork::handed_out;
}

/// Everything a server decides: its shard, which is there when the server's memory has a model or
/// the first one comes, and on server 0 the board of work. Knows nothing of how requests travel.
/// One thread at a time. Visits live until they are answered.
///
/// An exchange with a claim is two things: the shard answers the push and pull, then the board says
/// which piece of work comes with that answer. Where it has none to give yet (others must push
/// first) the finished reply waits here, and is tried again after every request and every leaving.
/// A piece that is handed out is in the shard's memory before the worker hears of it.
class ServerDesk {
 public:
  explicit ServerDesk(const ServerOptions& options);

  bool has_model() const { return shard_ != nullptr; }
  /// Whether pushes and pulls are messages of a codec.
  bool compresses() const;
  const ShardShape& shape() const { return shape_; }

  /// See Shard; also for the shard that is made when the first model comes.
  void replicate_by(Shard::Replicate replicate);

  /// The first model. Throws Error where it does not fit or has come before.
  void initialise(const ModelMessage& model);

  /// The same in parts, one after the other from the same worker: all but its floats, of which
  /// `total` will come, and then these; with the last there is a model. Sizes are checked before
  /// any memory is taken. What has come of a model is forgotten when its worker leaves, or when one
  /// begins anew.
  void expect_model(int worker, const ModelMessage& head, std::size_t total);
  void take_part(int worker, const ModelPart& part);

  /// Throws Error where the message is of another group of workers.
  void check_generation(const RequestHeader& header) const;

  /// What is to be known before a model is read.
  ReplyHeader look() const;
  /// The whole model as it is now, its floats in `floats`, of which there must be enough. Throws
  /// Error(not_found) where there is none.
  ModelMessage read(std::span<float> floats) const;

  /// The request's own `answer` and `refuse` are set here to the visit's.
  void take(Request&& request, Visit& visit);

  /// See Shard; nothing without a model.
  compression::CodecMemory codec_memory(int worker) const;
  void recall_codec(int worker, const compression::CodecMemory& memory);

  bool hands_out_work() const { return board_.has_value(); }
  /// See Shard; 0 without a model.
  std::uint64_t newest_push(int worker) const;

  /// The worker has gone: by its own word, or its process has ended.
  void leave(int worker, LeftWork work = LeftWork::handed_out);
  bool all_have_left() const;
  bool has_left(int worker) const { return left_[static_cast<std::size_t>(worker)]; }

  const Shard* shard() const { return shard_.get(); }

 private:
  /// A reply that is complete but for the piece of work it shall bring.
  struct WaitingClaim {
    ReplyHeader reply;
    Clock::time_point since;
    Visit* visit;
  };

  /// A first model on its way.
  struct Arriving {
    int worker;
    ModelMessage head;
    std::size_t total;
    std::size_t come = 0;
    std::unique_ptr<Shard> shard = {};
  };

  void check_first_model(const ModelMessage& head, std::size_t total) const;
  std::unique_ptr<Shard> make_shard(ShardMemory memory);
  void open(std::unique_ptr<Shard> shard);
  void finish(int worker, const ReplyHeader& reply, Visit& visit);
  bool try_claim(int worker, WaitingClaim& waiting);
  void retry_claims();
  void leave_work(int worker, LeftWork work);

  ServerOptions options_;
  ShardShape shape_;                         // Of shard_, once it is there.
  std::optional<cluster::WorkBoard> board_;  // Server 0, where work is handed out.
  std::unique_ptr<Shard> shard_;             // Null until there is a model.
  std::optional<Arriving> arriving_;         // A shard that becomes shard_ with its last float.
  Shard::Replicate replicate_;
  std::vector<std::optional<WaitingClaim>> claims_;  // By worker.
  std::vector<bool> left_;                           // By worker.
};

}  // namespace cohort::server
