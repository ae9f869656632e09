#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cluster/work_board.h"
#include "compression/codec.h"
#include "server/wire/shard_shape.h"

namespace cohort::server {

class MessageReader;

/// Of any optimizer.
inline constexpr std::uint64_t kMostSlots = 16;

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
  cluster::WorkLeft work = {};
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

/// Floats that stand in several places, as if one after the other: a model's in the order above, of
/// which parts are sent or received. Views only. T is float or const float.
template <class T>
class FloatList {
 public:
  void add(std::span<T> floats) {
    spans_.push_back(floats);
    size_ += floats.size();
  }

  std::size_t size() const { return size_; }

  /// `count` of them from `begin` on, where they stand; there must be as many.
  std::vector<std::span<T>> part(std::size_t begin, std::size_t count) const {
    std::vector<std::span<T>> found;
    for (std::span<T> span : spans_) {
      const std::size_t skipped = std::min(begin, span.size());
      begin -= skipped;
      const std::size_t taken = std::min(count, span.size() - skipped);
      count -= taken;
      if (taken > 0) found.push_back(span.subspan(skipped, taken));
    }
    return found;
  }

  /// Copies `floats` to where those from `begin` on stand; there must be as many.
  void put(std::size_t begin, std::span<const float> floats) const {
    for (const std::span<T> place : part(begin, floats.size())) {
      std::ranges::copy(floats.first(place.size()), place.begin());
      floats = floats.subspan(place.size());
    }
  }

 private:
  std::vector<std::span<T>> spans_;
  std::size_t size_ = 0;
};

/// A shape alone; read_shape() ignores what follows it.
void write_shape(std::vector<std::byte>& bytes, const ShardShape& shape);
ShardShape read_shape(std::span<const std::byte> bytes);

/// What a codec remembers, on its way between a server and the worker that saves it with the model,
/// or brings it back: the count of its floats and of its numbers, then both. In a `recall` the
/// parameters that the worker has follow, where the server keeps a copy of them (floats, to the
/// end).
void write_codec_memory(std::vector<std::byte>& bytes, const compression::CodecMemory& memory);
/// Takes one off the message. Throws Error(corrupt) where it ends too early.
compression::CodecMemory take_codec_memory(MessageReader& message);

}  // namespace cohort::server
