#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "compression/codec.h"
#include "server/shard/shard_rules.h"
#include "server/wire/request.h"

namespace cohort::server {

/// The way of the dense parameters to the workers' copies, and of their pushes back: as they are,
/// or by the job's codec. Rows of tables always travel as they are.
///
/// With a codec a pull does not bring the parameters but a message of how they differ from what the
/// worker has, which stands at `Request::pull_into`: in the worker's own memory where that is
/// shared, otherwise in a copy that the server keeps. The server decodes its own message and adds
/// it there, exactly as a worker elsewhere does with the message it gets. What a message leaves out
/// is part of the next difference, so nothing is lost. Two pulls are plain all the same: a worker's
/// first, which has nothing to add a difference to, and an `exact` one.

/// A server's end of the compressed messages to and from one worker.
class WorkerCodec {
 public:
  WorkerCodec(const CompressionOptions& options, const compression::CodecShape& shape,
              std::uint64_t seed);

  compression::Codec& codec() { return *codec_; }

  /// What a pushed message says; valid until the next call. Throws Error(corrupt).
  std::span<const float> decode(std::span<const std::byte> message);

  /// Brings `worker_has`, the worker's copy, nearer to `parameters` by the returned message of
  /// their difference. Valid until the next call.
  std::span<const std::byte> encode_change(std::span<const float> parameters,
                                           std::span<float> worker_has);

 private:
  std::unique_ptr<compression::Codec> codec_;
  std::vector<float> pushed_;
  std::vector<float> difference_;
  std::vector<std::byte> message_;
};

/// Both ways for all workers of a shard. One thread at a time.
class WorkerCopies {
 public:
  WorkerCopies(const ShardRules& rules, const ShardShape& shape);

  /// Whether every pull is no more than a copy of the parameters.
  bool plain() const { return plain_; }

  /// The gradients of a push; what is decoded is valid until the worker's next push.
  std::span<const float> pushed(const Request& request);

  /// Brings the parameters to where the request wants them.
  void pull(const Request& request, std::span<const float> parameters);

  /// The same where `pull_into` has the parameters already and pulls are plain.
  void pull_copied(const Request& request, std::span<const float> parameters);

  /// What the codec for this worker remembers; and to go on from it.
  compression::CodecMemory memory(int worker);
  void recall(int worker, const compression::CodecMemory& memory);

 private:
  struct Worker {
    bool has_pulled = false;
    std::unique_ptr<WorkerCodec> codec = {};  ///< Made when first used.
  };

  WorkerCodec& codec_of(int worker);

  CompressionOptions compression_;
  compression::CodecShape vectors_;
  bool plain_;
  std::vector<Worker> workers_;
};

}  // namespace cohort::server
