#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/client/server_client.h"
#include "strategy/servers/server_order.h"
#include "tensor/flat_layout.h"
#include "tensor/training_state.h"

namespace cohort {

/// How what servers have becomes part of a TrainingState, and back.

constexpr int kParameters = -1;  ///< Instead of the number of a slot.

/// The parameters or a slot of a TrainingState as the servers keep it.
void to_servers(const ServerOrder& order, std::span<const float> state, ServerModel& model,
                int slot);

/// The same back. What it came from may have changed places with `state`.
void from_servers(const ServerOrder& order, ServerModel& model, int slot,
                  std::vector<float>& state);

/// Steps of which nothing is left.
std::int64_t steps_done(const WorkLeft& work);

/// What is left to hand out after `state`, a step's batch cut into `parts`. Pieces of steps that
/// are partly done count only where the cut is the same; with another one such steps are done
/// again.
WorkLeft work_left(const TrainingState& state, std::int64_t parts);

/// Updates of an optimizer with so many slots that goes on from `state`; none where that has no
/// slots for it.
std::int64_t updates_before(const TrainingState& state, std::size_t slots);

/// Meanings of TrainingState::own, where a strategy with servers has filled it: a worker's momentum
/// of its own gradients;
inline constexpr std::string_view kOwnVelocity = "servers: velocity";
/// slots of the servers' optimizer, where workers have the job's;
inline constexpr std::string_view kOuterSlots = "servers: outer slots";
/// slots, then buffers, in case the servers have made the update of a last push.
inline constexpr std::string_view kPushed = "servers: pushed";

/// What both ends of a worker's compressed messages remember, and back; nothing where there is
/// none, or it is of another codec.
OwnMemory own_of_link(const LinkMemory& link, const std::string& codec);
std::optional<LinkMemory> link_of(const OwnMemory& own, const std::string& codec);
/// The same of any codec, whose name comes first.
std::optional<std::pair<std::string, LinkMemory>> any_link_of(const OwnMemory& own);

/// Floats between two tensors are nobody's, and are zero; but on servers to which messages go whose
/// codec knows no zero (sign) they are not, and the next messages depend on them. Of the
/// parameters, then of each slot.
std::vector<double> padding_of(const FlatLayout& layout, const ServerModel::Part& dense);
void put_padding(const FlatLayout& layout, std::span<const double> padding,
                 ServerModel::Part& dense);

void set_own(TrainingState& state, std::string_view meaning,
             const std::vector<std::span<const float>>& floats);

/// The floats set_own() got; nothing where there is something else.
std::span<const std::vector<float>> own_floats(const TrainingState* state,
                                               std::string_view meaning);

}  // namespace cohort
