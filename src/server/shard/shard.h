#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cluster/work_board.h"
#include "compression/codec.h"
#include "server/memory/push_ledger.h"
#include "server/memory/replica_message.h"
#include "server/memory/shard_memory.h"
#include "server/shard/shard_rules.h"
#include "server/wire/model_message.h"
#include "server/wire/request.h"

namespace cohort::server {

/// One server's part of the model and the rules by which it changes. Knows nothing of how requests
/// arrive. One thread at a time.
///
/// A gradient push is the worker's share of the gradient of the global batch's mean loss, so the
/// sum of all of a step's is the whole gradient, and a delta is one of as many parts of a mean.
/// sync makes a whole step of the pushes of all workers. Otherwise a push is one of `parts` of a
/// step, and an update with k of them is k/parts of a step (UpdateScalars::share), be k 1 (async),
/// the quorum, or less because fewer workers are left or the training ends: the model is moved by
/// the pushes that have come, not by how many come together. Sums are made in the order of the
/// workers, so sync gives the same bits in every run.
///
/// The *staleness* of a push is the number of updates that were made since its worker's last pull.
/// A quorum's push of an older version is late. Its worker does not wait but gets the parameters as
/// they are (unless `late_waits`); the push, unless dropped, is one of the k of the next update. So
/// workers that need the answers of several shards never make these wait for each other.
class Shard {
 public:
  /// In memory of its own.
  Shard(const ShardRules& rules, const ShardShape& shape);
  /// In this memory, with the model that it has, if it has one. A request is answered after what it
  /// did is committed. `board`: where pushes are made of work that server 0 hands out, and this is
  /// server 0; it must outlive the shard. A push and its work are done in one and the same commit.
  Shard(const ShardRules& rules, ShardMemory memory, cluster::WorkBoard* board);
  ~Shard();

  /// The first model. Until then requests wait. Its work is the board's business.
  void initialise(const ModelMessage& model);

  /// The same in parts: what comes, the floats themselves, and that they all are there.
  void expect_model(const ModelMessage& head, std::size_t total);
  void put_model(std::size_t begin, std::span<const float> floats);
  void publish_model(std::uint64_t version);

  /// Answers now, or during a later call once the other workers it depends on have come. A push
  /// whose sequence was seen before is answered with the parameters, but not applied again. What is
  /// wrong with a request is told to its `refuse`; submit() itself does not throw for it.
  void submit(Request&& request);

  /// What the codec of the messages to this worker remembers; and to go on from it.
  compression::CodecMemory codec_memory(int worker);
  void recall_codec(int worker, const compression::CodecMemory& memory);

  /// The worker is gone and will send nothing more. Quorum and async go on without it, and so does
  /// sync when it had finished; what has come of it counts, as it does on the other servers that it
  /// has come to. Otherwise a step of sync can no longer be made: what waits and what comes later
  /// is refused with Error(peer_lost) about this worker.
  void leave(int worker);

  /// The board has handed out this piece in this group, and to whom. Throws Error(no_space) where
  /// no more can be told of.
  void note_work(std::int64_t generation, const cluster::Claim& claim);

  /// Called after the commit of an update or a push, before anybody is answered. What it throws
  /// goes through the call that made the commit, and nobody is answered.
  using Replicate = std::function<void(const ShardMemory& memory, ReplicaMessage::Kind kind)>;
  /// `replicate` gets the whole now, if there is a model, and then every change.
  void replicate_by(Replicate replicate);

  /// The whole model in the order of ModelMessage, with its slots.
  std::size_t floats() const;
  std::size_t slots() const;
  void copy_to(std::span<float> all) const;

  const ShardShape& shape() const;
  std::uint64_t version() const;
  std::span<const float> dense() const;
  /// The number of the newest push of this group that has come of the worker; 0 before the first.
  std::uint64_t newest_push(int worker) const;
  /// Of all servers that have had this memory.
  const cluster::PushCounts& counts() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cohort::server
