#include "server/shard/worker_copies.h"

#include "base/vectorize.h"
#include "collective/sum_kernel.h"
#include "server/memory/copy_floats.h"
#include "server/wire/wire.h"

namespace cohort::server {
namespace {

COHORT_VECTORIZE void subtract(float* __restrict out, const float* __restrict a,
                               const float* __restrict b, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) out[i] = a[i] - b[i];
}

/// Only where the message has to travel, or its size is counted.
void write_message(const Request& request, std::span<const std::byte> message) {
  if (request.pull_encoded) request.pull_encoded->assign(message.begin(), message.end());
}

}  // namespace

WorkerCodec::WorkerCodec(const CompressionOptions& options, const compression::CodecShape& shape,
                         std::uint64_t seed)
    : codec_(compression::make_codec(options, shape, seed)),
      pushed_(shape.count),
      difference_(shape.count),
      message_(codec_->max_bytes()) {}

std::span<const float> WorkerCodec::decode(std::span<const std::byte> message) {
  codec_->decode(message, pushed_);
  return pushed_;
}

/// Decoding its own message is how the server knows what the worker makes of it.
std::span<const std::byte> WorkerCodec::encode_change(std::span<const float> parameters,
                                                      std::span<float> worker_has) {
  subtract(difference_.data(), parameters.data(), worker_has.data(), difference_.size());
  const auto message = std::span(message_).first(codec_->encode(difference_, message_));
  codec_->decode(message, difference_);
  collective::add_to(worker_has, difference_);
  return message;
}

WorkerCopies::WorkerCopies(const ShardRules& rules, const ShardShape& shape)
    : compression_(rules.compression),
      vectors_{.count = shape.dense, .matrices = shape.matrices},
      plain_(!compresses(rules.compression) || shape.dense == 0),
      workers_(static_cast<std::size_t>(rules.workers)) {}

std::span<const float> WorkerCopies::pushed(const Request& request) {
  if (request.encoded.empty()) return request.dense;
  return codec_of(request.header.worker).decode(request.encoded);
}

// The first pull of a worker is plain by both signs: this server has sent it nothing yet, and it
// says that it has nothing (version 0). One that comes from another group has a version, and what
// it has stands at `pull_into`, although this server is new to it.
void WorkerCopies::pull(const Request& request, std::span<const float> parameters) {
  bool& has_pulled = workers_[static_cast<std::size_t>(request.header.worker)].has_pulled;
  const bool first = !has_pulled && request.header.version == 0;
  has_pulled = true;
  if (plain_ || first || request.header.exact) {
    way_to_copy(parameters.size_bytes())(parameters, request.pull_into);
    pull_copied(request, parameters);
  } else {
    WorkerCodec& codec = codec_of(request.header.worker);
    write_message(request, codec.encode_change(parameters, request.pull_into));
  }
}

void WorkerCopies::pull_copied(const Request& request, std::span<const float> parameters) {
  write_message(request, std::as_bytes(parameters));
}

compression::CodecMemory WorkerCopies::memory(int worker) {
  return plain_ ? compression::CodecMemory() : codec_of(worker).codec().memory();
}

void WorkerCopies::recall(int worker, const compression::CodecMemory& memory) {
  if (!plain_) codec_of(worker).codec().recall(memory);
}

/// Seeded by the worker alone, so that a run can be repeated.
WorkerCodec& WorkerCopies::codec_of(int worker) {
  std::unique_ptr<WorkerCodec>& codec = workers_[static_cast<std::size_t>(worker)].codec;
  if (!codec) {
    codec =
        std::make_unique<WorkerCodec>(compression_, vectors_, static_cast<std::uint64_t>(worker));
  }
  return *codec;
}

}  // namespace cohort::server
