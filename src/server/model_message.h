#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cluster/work_board.h"
#include "server/shard_shape.h"

namespace cohort {

class MessageReader;

/// A shard's whole model on its way, as bytes:
///
///   version | number of slots | work left | shape | floats
///
/// Floats stand in the order in which shards keep them: dense values, each dense slot, then of each
/// table its values and each of its slots. They may also travel another way.
struct ModelMessage {
  std::uint64_t version = 0;
  std::size_t slots = 0;  ///< 0: all slots are zero.
  WorkLeft work = {};
  ShardShape shape = {};
  std::span<const float> floats = {};
};

/// Appends everything but the floats, so that floats may follow.
void write_model(std::vector<std::byte>& bytes, const ModelMessage& model);

/// Throws Error(corrupt). The floats are what follows, whatever their number.
ModelMessage read_model_message(std::span<const std::byte> bytes);

/// The same, of a message that may go on in another way: takes everything but the floats.
ModelMessage take_model_head(MessageReader& reader);

/// A shape alone; read_shape() ignores what follows it.
void write_shape(std::vector<std::byte>& bytes, const ShardShape& shape);
ShardShape read_shape(std::span<const std::byte> bytes);

}  // namespace cohort
