#include "compression/error_feedback.h"

#include <algorithm>

#include "base/vectorize.h"
#include "compression/codecs.h"

namespace cohort::compression {
namespace {

// sum[i] = factor * a[i] + b[i]
COHORT_VECTORIZE void scaled_sum(float* __restrict sum, const float* __restrict a,
                                 const float* __restrict b, std::size_t count, float factor) {
  for (std::size_t i = 0; i < count; ++i) sum[i] = factor * a[i] + b[i];
}

COHORT_VECTORIZE void step_ahead(float* __restrict velocity, float* __restrict gradient,
                                 std::size_t count, float factor, float own, float ahead) {
  for (std::size_t i = 0; i < count; ++i) {
    velocity[i] = factor * velocity[i] + gradient[i];
    gradient[i] = own * gradient[i] + ahead * velocity[i];
  }
}

}  // namespace

void apply_momentum(const WorkerMomentum& momentum, std::span<float> velocity,
                    std::span<float> gradient) {
  const auto factor = static_cast<float>(momentum.factor);
  const float own = momentum.nesterov ? 1 : 0;
  const float ahead = momentum.nesterov ? factor : 1;
  step_ahead(velocity.data(), gradient.data(), gradient.size(), factor, own, ahead);
}

ErrorFeedback::ErrorFeedback(std::unique_ptr<Codec> codec, std::size_t count, Options options)
    : codec_(std::move(codec)),
      options_(options),
      rest_(options.keep_rest ? count : 0),
      velocity_(options.momentum.factor > 0 ? count : 0),
      ahead_(options.momentum.nesterov ? count : 0),
      message_(codec_->max_bytes()) {}

// A vector on its way into a message:
//
//   gradient ──▶ + momentum · velocity ──▶ + rest ──▶ codec ──▶ message
//                 (kept: the velocity)      (kept: all that the message does not say)
//
// Where a codec chooses coordinates (top-k), those that were sent begin with no velocity again:
// otherwise it would go on pushing what it has pushed already, while others still wait for their
// turn. Both memories are in two copies, of before and after, so that a step that is dropped later
// can be taken back (undo) without a copy of anything.
std::span<const std::byte> ErrorFeedback::encode(std::span<const float> values) {
  std::span<const float> vector = values;
  if (!velocity_.empty()) {
    check_count("momentum-corrected", values.size(), velocity_.now.size());
    std::swap(velocity_.now, velocity_.before);
    const auto factor = static_cast<float>(options_.momentum.factor);
    scaled_sum(velocity_.now.data(), velocity_.before.data(), values.data(), values.size(), factor);
    vector = velocity_.now;
    if (options_.momentum.nesterov) {
      scaled_sum(ahead_.data(), velocity_.now.data(), values.data(), values.size(), factor);
      vector = ahead_;
    }
  }
  if (!rest_.empty()) {
    check_count("error-feedback", values.size(), rest_.now.size());
    std::swap(rest_.now, rest_.before);
    scaled_sum(rest_.now.data(), rest_.before.data(), vector.data(), vector.size(), 1);
    vector = rest_.now;
  }
  undoable_ = true;
  undone_ = false;
  const auto message = std::span(message_).first(codec_->encode(vector, message_));
  if (!rest_.empty()) codec_->subtract(message, rest_.now);
  if (!velocity_.empty() && codec_->chooses()) codec_->clear(message, velocity_.now);
  return message;
}

void ErrorFeedback::start_from(std::span<const float> rest, std::span<const float> velocity) {
  if (rest.size() == rest_.now.size()) std::ranges::copy(rest, rest_.now.begin());
  if (velocity.size() == velocity_.now.size()) {
    std::ranges::copy(velocity, velocity_.now.begin());
  }
  undoable_ = undone_ = false;
}

void ErrorFeedback::undo() {
  if (!undoable_) return;
  std::swap(rest_.now, rest_.before);
  std::swap(velocity_.now, velocity_.before);
  undoable_ = false;
  undone_ = true;
}

}  // namespace cohort::compression
