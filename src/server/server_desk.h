#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cluster/work_board.h"
#include "server/run_server.h"
#include "server/shard.h"

namespace cohort {

/// A request under way in a server, whichever way it came.
class Visit {
 public:
  virtual ~Visit() = default;
  virtual void answer(const ReplyHeader& reply) = 0;
  virtual void refuse(const Error& error) = 0;
};

/// Everything a server decides: its shard, made when the first model comes, and on server 0 the
/// board of work. Knows nothing of how requests travel. One thread at a time. Visits live until
/// they are answered.
class ServerDesk {
 public:
  explicit ServerDesk(const ServerOptions& options);

  bool has_model() const { return shard_ != nullptr; }
  /// Whether pushes and pulls are messages of a codec.
  bool compresses() const;
  const ShardShape& shape() const { return shape_; }

  /// The first model. Throws Error where it does not fit or has come before.
  void initialise(const ShardShape& shape, std::span<const float> dense,
                  const std::vector<std::vector<float>>& tables);

  /// The request's own `answer` and `refuse` are set here to the visit's.
  void take(Request request, Visit& visit);

  void leave(int worker);
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

  void finish(int worker, const ReplyHeader& reply, Visit& visit);
  bool try_claim(int worker, WaitingClaim& waiting);
  void retry_claims();

  ServerOptions options_;
  ShardShape shape_;
  std::unique_ptr<Shard> shard_;
  std::optional<WorkBoard> board_;
  std::vector<std::optional<WaitingClaim>> claims_;  // By worker.
  std::vector<bool> left_;
};

}  // namespace cohort
