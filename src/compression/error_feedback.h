#pragma once

#include <memory>
#include <span>
#include <vector>

#include "compression/codec.h"

namespace cohort::compression {

/// SGD's momentum where a worker applies it to its own gradients before they leave. Whoever gets
/// them must apply none of its own. Applied after a lossy codec it would keep going on with what
/// one message said too much and the next one takes back; applied to gradients that are late by
/// several updates it would swing.
struct WorkerMomentum {
  double factor = 0;  ///< 0: there is none.
  bool nesterov = false;
};

/// velocity = factor * velocity + gradient; the gradient becomes what SGD would step by.
void apply_momentum(const WorkerMomentum& momentum, std::span<float> velocity,
                    std::span<float> gradient);

/// One side's way from vectors to messages that loses nothing in the long run: what a message left
/// out, the *rest*, is added to the next vector (error feedback; Seide et al. 2014, Karimireddy et
/// al. 2019).
///
///   values --> velocity = factor * velocity + values     (with momentum; Nesterov's looks one
///                 |                                        step further ahead)
///                 v
///              vector + rest --> encode --> message --> the others
///                 ^                            |
///                 +--- rest = what it left out <
///
/// With momentum the values are gradients. Where a codec chooses places (topk), momentum of the
/// chosen ones starts anew (deep gradient compression, Lin et al. 2018); with others (sign) it
/// stays, as in blockwise momentum SGD with error feedback (Zheng et al. 2019).
///
/// A message may be lost with a peer. Until keep() is called, or the next message made, undo()
/// takes the last one back: rest and velocity are then what they were before it (of a codec's own
/// memory nothing is taken back: it changes which messages are made, not what they add up to).
///
/// It owns its codec. One thread at a time.
class ErrorFeedback {
 public:
  struct Options {
    bool keep_rest = true;  ///< Off: what a message leaves out is lost.
    WorkerMomentum momentum = {};
  };

  /// For vectors of `count` floats, as the codec's shape has them.
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
  bool undoable_ = false;  // There is a message that undo() would take back.
  bool undone_ = false;    // undo() was the last that happened to them; `before` has what it took.
  std::vector<float> ahead_;  // Nesterov: the velocity after one more step.
  std::vector<std::byte> message_;
};

}  // namespace cohort::compression
