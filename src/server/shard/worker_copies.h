#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "server/shard/shard.h"
#include "server/shard/worker_codec.h"
#include "server/wire/request.h"

namespace cohort {

/// The way of the dense parameters to the workers' copies, and of their pushes back: as they are,
/// or by the job's codec.
class WorkerCopies {
 public:
  WorkerCopies(const ShardRules& rules, const ShardShape& shape);

  /// Whether a pull is no more than a copy of the parameters.
  bool plain() const { return plain_; }

  /// The gradients of a push; what is decoded is valid until the worker's next push.
  std::span<const float> pushed(const Request& request);

  /// Brings the parameters to where the request wants them. A worker's first pull is plain, since
  /// there is nothing yet to which a difference could be added; so is an `exact` one.
  void pull(const Request& request, std::span<const float> parameters);

  /// The same where `pull_into` has the parameters already and pulls are plain.
  void pull_copied(const Request& request, std::span<const float> parameters);

  /// What the codec for this worker remembers; and to go on from it.
  CodecMemory memory(int worker);
  void recall(int worker, const CodecMemory& memory);

 private:
  struct Worker {
    bool has_pulled = false;
    std::unique_ptr<WorkerCodec> codec = {};  ///< Made when first used.
  };

  WorkerCodec& codec_of(int worker);

  CompressionOptions compression_;
  CodecShape vectors_;
  bool plain_;
  std::vector<Worker> workers_;
};

}  // namespace cohort
