#include "compression/error_feedback.h"

#include "base/vectorize.h"
#include "compression/check_message.h"
#include "compression/float_loops.h"

namespace cohort {
namespace {

COHORT_VECTORIZE void gain_speed(float* __restrict velocity, const float* __restrict values,
                                 std::size_t count, float momentum) {
  for (std::size_t i = 0; i < count; ++i) velocity[i] = momentum * velocity[i] + values[i];
}

}  // namespace

ErrorFeedback::ErrorFeedback(std::unique_ptr<Codec> codec, std::size_t count, Options options)
    : codec_(std::move(codec)),
      options_(options),
      rest_(options.keep_rest ? count : 0),
      velocity_(options.momentum > 0 ? count : 0),
      message_(codec_->max_bytes()) {}

std::span<const std::byte> ErrorFeedback::encode(std::span<const float> values) {
  std::span<const float> vector = values;
  if (!velocity_.empty()) {
    check_count("momentum-corrected", values.size(), velocity_.size());
    gain_speed(velocity_.data(), values.data(), values.size(),
               static_cast<float>(options_.momentum));
    vector = velocity_;
  }
  if (!rest_.empty()) {
    check_count("error-feedback", values.size(), rest_.size());
    add_floats(rest_, vector);
    vector = rest_;
  }
  const auto message = std::span(message_).first(codec_->encode(vector, message_));
  if (!rest_.empty()) codec_->subtract(message, rest_);
  if (!velocity_.empty()) codec_->clear(message, velocity_);
  return message;
}

}  // namespace cohort
