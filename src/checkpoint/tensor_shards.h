#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace cohort::checkpoint {

/// Tensors of which several tasks each hold a part.
///
/// The *full* tensor has a shape; its values are counted in the order of rows, from 0. A *shard* is
/// what one task holds of it: ranges of those numbers, ascending and apart from each other, and the
/// values of all of them one after the other. In a task's file a shard is a tensor of one side,
/// under the full tensor's name, and the file's metadata has a text for it:
///
///   "shard/<name>": {"shape": [4, 3], "ranges": [[0, 2], [6, 8]]}
///
/// All shards of a name together hold every value once:
///
///   full tensor [4, 3]    0  1 | 2  3  4  5 | 6  7 | 8  9 10 11
///   task 0                0  1              | 6  7                 ranges [[0, 2], [6, 8]]
///   task 1                       2  3  4  5        | 8  9 10 11    ranges [[2, 6], [8, 12]]
///
/// So tasks may be more or fewer when it is read again: each asks for the ranges it wants, whoever
/// wrote them.

/// Values [begin, end) of a full tensor.
struct ShardRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t size() const { return end - begin; }
  bool operator==(const ShardRange&) const = default;
};

/// A shard to write; the values are the caller's.
struct TensorShard {
  std::string name;
  std::vector<std::int64_t> shape;  ///< Of the full tensor.
  std::vector<ShardRange> ranges;
  decltype(TensorView::values) values;
};

/// What a task's file has in its header for a shard.
std::string shard_key(const std::string& tensor);
std::string to_text(const TensorShard& shard);

/// The file with these shards. Throws Error(invalid) naming the tensor whose ranges are not within
/// its shape, not ascending, or have not as many values.
CheckpointContent::File shard_file(const std::string& name, std::span<const TensorShard> shards);

/// The tensors that the files of several tasks hold together, put together where they are asked
/// for. Nothing but headers is read before. Keeps the files open; does not need the Checkpoint once
/// it is made.
class ShardedTensors {
 public:
  /// `files` of the checkpoint, all that have shards. Throws Error(corrupt) with a sentence that
  /// names tensor and file where shapes or types disagree, a range is outside its tensor, two of
  /// them overlap, or a value is in none.
  ShardedTensors(const Checkpoint& checkpoint, std::span<const std::string> files,
                 const SafetensorsExpectation& expected = {});

  std::vector<std::string> names() const;

  /// Of the full tensor. Throws Error(not_found).
  const std::vector<std::int64_t>& shape(const std::string& name) const;
  SafetensorsDtype dtype(const std::string& name) const;

  /// The values of a range, whoever holds them; as many as `into` has room for. Throws
  /// Error(not_found), Error(invalid) for another type, another size or a range outside.
  void read(const std::string& name, ShardRange range, std::span<float> into) const;
  void read(const std::string& name, ShardRange range, std::span<double> into) const;
  void read(const std::string& name, ShardRange range, std::span<std::int64_t> into) const;

 private:
  struct Piece {
    ShardRange range;
    std::size_t file = 0;    // Of sources_.
    std::size_t tensor = 0;  // Of that file.
    std::int64_t first = 0;  // The value of that tensor with which it begins.
  };
  struct Full {
    std::vector<std::int64_t> shape;
    SafetensorsDtype dtype = SafetensorsDtype::f32;
    std::int64_t count = 0;
    std::size_t file = 0;            // That spoke of it first.
    std::vector<Piece> pieces = {};  // In the order of their ranges.
  };

  void add_file(std::size_t file);
  void add_shard(std::size_t file, std::size_t tensor, const std::string& text);
  void check_complete(const std::string& name, Full& full) const;
  const Full& full(const std::string& name) const;
  std::string file_name(std::size_t file) const { return sources_[file].path().string(); }
  template <class T>
  void read_values(const std::string& name, ShardRange range, std::span<T> into,
                   SafetensorsDtype dtype) const;

  std::vector<SafetensorsSource> sources_;
  std::vector<std::pair<std::string, Full>> tensors_;  // By name.
};

}  // namespace cohort::checkpoint
