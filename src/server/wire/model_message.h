#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cluster/work_board.h"
#include "server/memory/shard_shape.h"

namespace cohort {

class MessageReader;

/// A shard's whole model on its way, as bytes:
///
///   version | number of slots | work left | shape | floats
///
/// Floats stand in the order in which shards keep them: dense values, each dense slot, then of each
/// table its values and each of its slots. They may also travel another way: through shared memory,
/// or in *parts*, messages of a bounded size that each say where in that order they begin. A model
/// with its slots can be larger than any one message.
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

/// A part of a model's floats on its way: where it begins, and how many there are or the floats.
struct ModelPart {
  std::uint64_t begin = 0;
  std::uint64_t count = 0;
  std::span<const float> floats = {};
};
/// Appends everything but the floats, so that floats may follow.
void write_model_part(std::vector<std::byte>& bytes, const ModelPart& part);
/// Throws Error(corrupt). Floats that follow must be as many as it says, or none.
ModelPart read_model_part(std::span<const std::byte> bytes);

/// A shape alone; read_shape() ignores what follows it.
void write_shape(std::vector<std::byte>& bytes, const ShardShape& shape);
ShardShape read_shape(std::span<const std::byte> bytes);

}  // namespace cohort
