#pragma once

#include <memory>
#include <span>
#include <vector>

#include "compression/codec.h"

namespace cohort {

/// One side's way from vectors to messages that loses nothing in the long run: what a message left
/// out is added to the next vector. With `momentum` above 0 (top-k) the vectors are gradients to
/// which momentum is applied before the choice, and momentum of chosen places starts anew (deep
/// gradient compression); the receiver must then apply none of its own.
class ErrorFeedback {
 public:
  struct Options {
    bool keep_rest = true;  ///< Off: what a message leaves out is lost.
    double momentum = 0;
  };

  ErrorFeedback(std::unique_ptr<Codec> codec, std::size_t count, Options options);

  const Codec& codec() const { return *codec_; }

  /// The message of `values` plus what earlier ones left out. Valid until the next call.
  std::span<const std::byte> encode(std::span<const float> values);

  /// What the last message did not say; empty where nothing is kept.
  std::span<const float> rest() const { return rest_; }

 private:
  std::unique_ptr<Codec> codec_;
  Options options_;
  std::vector<float> rest_;
  std::vector<float> velocity_;
  std::vector<std::byte> message_;
};

}  // namespace cohort
