#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collective/compressed/gradient_exchange.h"
#include "server/client/server_client.h"
#include "tensor/training_state.h"

namespace cohort::strategy {

/// What TrainingState::own and TrainingState::link can hold: the forms of an OwnMemory, all in one
/// place, because the strategy that reads one may be another than the one that wrote it, and
/// DealtState deals all of them out. They are in checkpoints: meanings, and the order of vectors
/// and numbers, are a file format and stay as they are.
///
///   "all-reduce compressed by KIND", or "… by auto KIND" where it was picked by trying
///       by allreduce_compressed: see CompressionMemory
///   "servers: velocity"       by gradient_push
///       floats: the velocity; numbers: the parts of a step
///   "servers: outer slots"    by delta_push's chief
///       floats: a vector per slot of the servers' optimizer
///   "servers: pushed"         by both, only carried
///       floats: slots (delta_push only), then buffers
///   "steps in this worker's model"          by parameter_gossip
///       doubles: the age
///   "gradients that peers were not told"    by gradient_gossip
///       floats: the gradients; doubles: pieces, rate; numbers, where dealt: models averaged
///   "servers: messages by KIND"             in `link`, by gradient_push and delta_push
///       see own_of_link(); doubles of the chief: padding, see server_order.h
///
/// Whoever finds a meaning it does not know, or sizes that do not fit, goes on without: nothing
/// here throws.

/// A worker's momentum of its own gradients. The number says how many parts a step had then.
inline constexpr std::string_view kOwnVelocity = "servers: velocity";
/// Slots of the servers' optimizer, where workers have the job's.
inline constexpr std::string_view kOuterSlots = "servers: outer slots";
/// What the worker has should the servers have made the update of its last push.
inline constexpr std::string_view kPushed = "servers: pushed";
/// How many steps' worth of pieces are in a model of one's own (gossip/model_age.h).
inline constexpr std::string_view kModelAge = "steps in this worker's model";
/// Gradients in their mean over the peers, with the pieces they are of and the mean rate of these.
inline constexpr std::string_view kUntoldGradients = "gradients that peers were not told";

/// Makes state.own vectors of floats with that meaning.
void set_own(tensor::TrainingState& state, std::string_view meaning,
             const std::vector<std::span<const float>>& floats);
/// The floats set_own() got; nothing where there is something else.
std::span<const std::vector<float>> own_floats(const tensor::TrainingState* state,
                                               std::string_view meaning);

/// What a worker with compressed gradients leaves in TrainingState::own for the next one.
struct CompressionMemory {
  std::string compression;  ///< The kind in use; empty while auto still tries.
  bool is_auto = false;     ///< It was picked by trying.
  collective::ExchangeMemory exchange;
  /// The same in case the step it was at is done: others may have come to its end. Only from one
  /// group of workers to the next.
  std::optional<collective::ExchangeMemory> if_done = {};

  /// Three vectors of floats per exchange: rest, velocity, the codecs' floats; and of the numbers
  /// how many are the codecs', then these.
  tensor::OwnMemory as_own() const;

  /// Of what as_own() made; nothing where there is none, or it is something else.
  static std::optional<CompressionMemory> read(const tensor::TrainingState* state);
};

/// What both ends of a worker's compressed messages with servers remember: rest, velocity, what the
/// worker has of the parameters, then two codecs per server (the worker's, the server's), each a
/// vector of floats, and a count with as many numbers.
tensor::OwnMemory own_of_link(const server::LinkMemory& link, const std::string& codec);
/// And back; nothing where there is none, or it is of another codec.
std::optional<server::LinkMemory> link_of(const tensor::OwnMemory& own, const std::string& codec);
/// The same of any codec, whose name comes first.
std::optional<std::pair<std::string, server::LinkMemory>> any_link_of(const tensor::OwnMemory& own);

}  // namespace cohort::strategy
