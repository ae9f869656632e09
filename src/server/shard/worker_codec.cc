#include "server/shard/worker_codec.h"

#include "base/vectorize.h"
#include "collective/sum_kernel.h"

namespace cohort {
namespace {

COHORT_VECTORIZE void subtract(float* __restrict out, const float* __restrict a,
                               const float* __restrict b, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) out[i] = a[i] - b[i];
}

}  // namespace

bool compresses(const CompressionOptions& options) {
  return options.kind != "none" && options.kind != "auto";
}

WorkerCodec::WorkerCodec(const CompressionOptions& options, const CodecShape& shape,
                         std::uint64_t seed)
    : codec_(make_codec(options, shape, seed)),
      pushed_(shape.count),
      difference_(shape.count),
      message_(codec_->max_bytes()) {}

std::span<const float> WorkerCodec::decode(std::span<const std::byte> message) {
  codec_->decode(message, pushed_);
  return pushed_;
}

std::span<const std::byte> WorkerCodec::encode_change(std::span<const float> parameters,
                                                      std::span<float> worker_has) {
  subtract(difference_.data(), parameters.data(), worker_has.data(), difference_.size());
  const auto message = std::span(message_).first(codec_->encode(difference_, message_));
  codec_->decode(message, difference_);
  add_to(worker_has, difference_);
  return message;
}

}  // namespace cohort
