#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "compression/codec.h"

namespace cohort {

/// Whether messages of this kind are shorter than plain floats.
bool compresses(const CompressionOptions& options);

/// A server's end of the compressed messages to and from one worker.
class WorkerCodec {
 public:
  WorkerCodec(const CompressionOptions& options, const CodecShape& shape, std::uint64_t seed);

  Codec& codec() { return *codec_; }

  /// What a pushed message says; valid until the next call. Throws Error(corrupt).
  std::span<const float> decode(std::span<const std::byte> message);

  /// Brings `worker_has`, the worker's copy, nearer to `parameters` by the returned message of
  /// their difference. What a message leaves out is in the next difference, so nothing is lost.
  /// Valid until the next call.
  std::span<const std::byte> encode_change(std::span<const float> parameters,
                                           std::span<float> worker_has);

 private:
  std::unique_ptr<Codec> codec_;
  std::vector<float> pushed_;
  std::vector<float> difference_;
  std::vector<std::byte> message_;
};

}  // namespace cohort
