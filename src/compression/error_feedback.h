#pragma once

#include <memory>
#include <span>
#include <vector>

#include "compression/codec.h"
#include "compression/worker_momentum.h"

namespace cohort {

/// One side's way from vectors to messages that loses nothing in the long run: what a message left
/// out is added to the next vector. With momentum the vectors are gradients to which it is applied
/// before they are encoded. Where a codec chooses places (top-k), momentum of the chosen ones
/// starts anew (deep gradient compression); with others (sign) it stays, as in blockwise momentum
/// SGD with error feedback (Zheng et al. 2019).
class ErrorFeedback {
 public:
  struct Options {
    bool keep_rest = true;  ///< Off: what a message leaves out is lost.
    WorkerMomentum momentum = {};
  };

  ErrorFeedback(std::unique_ptr<Codec> codec, std::size_t count, Options options);

  const Codec& codec() const { return *codec_; }
  Codec& codec() { return *codec_; }

  /// The message of `values` plus what earlier ones left out. Valid until the next call.
  std::span<const std::byte> encode(std::span<const float> values);

  /// What the last message did not say; empty where nothing is kept.
  std::span<const float> rest() const { return rest_.now; }
  /// The momentum; empty where there is none.
  std::span<const float> velocity() const { return velocity_.now; }

  /// Goes on from another's rest() or velocity(), each where it has the right size.
  void start_from(std::span<const float> rest, std::span<const float> velocity);

  /// The last message has arrived: undo() does nothing until the next.
  void keep() { undoable_ = false; }

  /// The last message never arrived: rest and velocity become what they were before it.
  void undo();

  /// What undo() took back, for whoever learns later that the message has arrived after all; where
  /// nothing was taken back, what there is.
  std::span<const float> undone_rest() const { return undone_ ? rest_.before : rest_.now; }
  std::span<const float> undone_velocity() const {
    return undone_ ? velocity_.before : velocity_.now;
  }

 private:
  /// A vector and what it was before the last message.
  struct Undoable {
    explicit Undoable(std::size_t count) : now(count), before(count) {}
    bool empty() const { return now.empty(); }

    std::vector<float> now;
    std::vector<float> before;
  };

  std::unique_ptr<Codec> codec_;
  Options options_;
  Undoable rest_;
  Undoable velocity_;
  bool undoable_ = false;
  bool undone_ = false;
  std::vector<float> ahead_;  // Nesterov: the velocity after one more step.
  std::vector<std::byte> message_;
};

}  // namespace cohort
