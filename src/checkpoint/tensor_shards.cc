#include "checkpoint/tensor_shards.h"

#include <algorithm>
#include <limits>
#include <map>

#include "base/fail.h"
#include "base/integers.h"
#include "base/json.h"

namespace cohort::checkpoint {
namespace {

constexpr std::string_view kShardPrefix = "shard/";

/// So that the number of a value, and of its byte, is one that can be counted with.
constexpr std::int64_t kMostValues = std::numeric_limits<std::int64_t>::max() / 16;

template <class... Args>
[[noreturn]] void wrong_shard(const std::string& path, const std::string& tensor,
                              fmt::format_string<Args...> what, Args&&... args) {
  fail(ErrorCode::corrupt, "{} has a shard of \"{}\" {}", path, excerpt(tensor),
       fmt::format(what, std::forward<Args>(args)...));
}

std::string in_words(const ShardRange& range) {
  return fmt::format("{} to {}", range.begin, range.end);
}

std::int64_t count_in(std::span<const ShardRange> ranges) {
  std::int64_t count = 0;
  for (const ShardRange& range : ranges) count += range.size();
  return count;
}

/// Nothing where the shape has more values than can be counted, or a side that is none.
std::optional<std::int64_t> values_in(const std::vector<std::int64_t>& shape) {
  if (std::ranges::any_of(shape, [](std::int64_t side) { return side < 0; })) return std::nullopt;
  const auto count = checked_product(std::span(shape));
  return count && *count <= kMostValues ? count : std::nullopt;
}

/// What is wrong with the ranges of a tensor with so many values; empty: nothing.
std::string fault_of(std::span<const ShardRange> ranges, std::int64_t count) {
  std::int64_t reached = 0;
  for (const ShardRange& range : ranges) {
    if (range.begin < 0 || range.begin > range.end || range.end > count) {
      return fmt::format("with the values {}, but it has {}", in_words(range), count);
    }
    if (range.begin < reached) {
      return fmt::format("whose ranges overlap or do not ascend at {}", in_words(range));
    }
    reached = range.end;
  }
  return {};
}

struct ShardText {
  std::vector<std::int64_t> shape;
  std::vector<ShardRange> ranges;
};

ShardText parse_shard(const std::string& text, const std::string& tensor, const std::string& path) {
  try {
    const auto json = parse_json(text);
    if (!json.is_object()) fail(ErrorCode::corrupt, "it is no JSON object");
    ShardText shard;
    for (const auto& side : json.at("shape")) {
      shard.shape.push_back(integer_of(side, "shape", 0, kMostValues));
    }
    for (const auto& range : json.at("ranges")) {
      shard.ranges.push_back({.begin = integer_of(range.at(0), "ranges", 0, kMostValues),
                              .end = integer_of(range.at(1), "ranges", 0, kMostValues)});
    }
    return shard;
  } catch (const std::exception& wrong) {
    wrong_shard(path, tensor, "whose description cannot be read: {}", wrong.what());
  }
}

}  // namespace

std::string shard_key(const std::string& tensor) {
  return std::string(kShardPrefix) + tensor;
}

std::string to_text(const TensorShard& shard) {
  nlohmann::ordered_json ranges = nlohmann::ordered_json::array();
  for (const ShardRange& range : shard.ranges) ranges.push_back({range.begin, range.end});
  return nlohmann::ordered_json{{"shape", shard.shape}, {"ranges", ranges}}.dump();
}

CheckpointContent::File shard_file(const std::string& name, std::span<const TensorShard> shards) {
  CheckpointContent::File file;
  file.name = name;
  for (const TensorShard& shard : shards) {
    const auto count = values_in(shard.shape);
    const std::string fault =
        count ? fault_of(shard.ranges, *count) : std::string("of a shape that cannot be");
    if (!fault.empty()) {
      fail(ErrorCode::invalid, "{} would have a shard of \"{}\" {}", name, shard.name, fault);
    }
    file.tensors.push_back({shard.name, {count_in(shard.ranges)}, shard.values});
    file.metadata[shard_key(shard.name)] = to_text(shard);
  }
  return file;
}

// Reads headers only: every file's shards are added to the full tensors they are of, and when all
// are known each full tensor must be there once, from its first value to its last. What is wrong is
// then found before a training begins to load anything, and named by tensor and file.
ShardedTensors::ShardedTensors(const Checkpoint& checkpoint, std::span<const std::string> files,
                               const SafetensorsExpectation& expected) {
  for (const std::string& file : files) {
    sources_.push_back(checkpoint.source(file, expected));
    add_file(sources_.size() - 1);
  }
  for (auto& [name, full] : tensors_) check_complete(name, full);
}

void ShardedTensors::add_file(std::size_t file) {
  const SafetensorsSource& source = sources_[file];
  std::map<std::string, std::size_t> numbers;
  for (std::size_t i = 0; i < source.tensors().size(); ++i) numbers[source.tensors()[i].name] = i;
  for (const auto& [key, text] : source.metadata()) {
    if (!key.starts_with(kShardPrefix)) continue;
    const std::string name = key.substr(kShardPrefix.size());
    const auto found = numbers.find(name);
    if (found == numbers.end()) {
      wrong_shard(file_name(file), name, "that is described and not there");
    }
    add_shard(file, found->second, text);
  }
}

void ShardedTensors::add_shard(std::size_t file, std::size_t tensor, const std::string& text) {
  const StoredTensor& stored = sources_[file].tensors()[tensor];
  const std::string path = file_name(file);
  const ShardText shard = parse_shard(text, stored.name, path);
  const auto count = values_in(shard.shape);
  if (!count) wrong_shard(path, stored.name, "of a shape that cannot be");
  if (const auto fault = fault_of(shard.ranges, *count); !fault.empty()) {
    wrong_shard(path, stored.name, "{}", fault);
  }
  if (stored.shape != std::vector{count_in(shard.ranges)}) {
    wrong_shard(path, stored.name, "whose ranges speak of {} values, and it has another number",
                count_in(shard.ranges));
  }
  auto known =
      std::ranges::lower_bound(tensors_, stored.name, {}, &decltype(tensors_)::value_type::first);
  if (known == tensors_.end() || known->first != stored.name) {
    known = tensors_.insert(
        known, {stored.name,
                Full{.shape = shard.shape, .dtype = stored.dtype, .count = *count, .file = file}});
  }
  Full& full = known->second;
  if (full.shape != shard.shape || full.dtype != stored.dtype) {
    wrong_shard(path, stored.name, "of shape [{}], but {} has one of [{}]{}",
                excerpt(fmt::format("{}", fmt::join(shard.shape, ", "))), file_name(full.file),
                excerpt(fmt::format("{}", fmt::join(full.shape, ", "))),
                full.dtype == stored.dtype ? "" : " and of another type");
  }
  std::int64_t first = 0;
  for (const ShardRange& range : shard.ranges) {
    if (range.size() > 0) full.pieces.push_back({range, file, tensor, first});
    first += range.size();
  }
}

/// Every value is in one piece: sorted by their begins, each must begin where the last one ended.
void ShardedTensors::check_complete(const std::string& name, Full& full) const {
  std::ranges::sort(full.pieces, {}, [](const Piece& piece) { return piece.range.begin; });
  std::int64_t reached = 0;
  const Piece* last = nullptr;
  for (const Piece& piece : full.pieces) {
    if (piece.range.begin < reached) {
      wrong_shard(file_name(piece.file), name, "with the values {}, some of which {} has too",
                  in_words(piece.range), file_name(last->file));
    }
    if (piece.range.begin > reached) break;
    reached = piece.range.end;
    last = &piece;
  }
  if (reached == full.count) return;
  fail(ErrorCode::corrupt, "nobody has the values of \"{}\" from {} on: {} has a shard of it",
       excerpt(name), reached, file_name(full.file));
}

std::vector<std::string> ShardedTensors::names() const {
  std::vector<std::string> names;
  for (const auto& [name, full] : tensors_) names.push_back(name);
  return names;
}

const ShardedTensors::Full& ShardedTensors::full(const std::string& name) const {
  const auto found =
      std::ranges::lower_bound(tensors_, name, {}, &decltype(tensors_)::value_type::first);
  if (found == tensors_.end() || found->first != name) {
    fail(ErrorCode::not_found, "the checkpoint has no shard of \"{}\"", name);
  }
  return found->second;
}

const std::vector<std::int64_t>& ShardedTensors::shape(const std::string& name) const {
  return full(name).shape;
}

SafetensorsDtype ShardedTensors::dtype(const std::string& name) const {
  return full(name).dtype;
}

/// Goes through the pieces from the one with the first value on; each gives what it has of the
/// range.
template <class T>
void ShardedTensors::read_values(const std::string& name, ShardRange range, std::span<T> into,
                                 SafetensorsDtype dtype) const {
  const Full& whole = full(name);
  if (whole.dtype != dtype) fail(ErrorCode::invalid, "\"{}\" holds values of another type", name);
  if (range.begin < 0 || range.end > whole.count || range.begin > range.end ||
      static_cast<std::size_t>(range.size()) != into.size()) {
    fail(ErrorCode::invalid,
         "the values {} of \"{}\" do not fit: it has {}, and there is room for {}", in_words(range),
         name, whole.count, into.size());
  }
  auto piece = std::ranges::lower_bound(whole.pieces, range.begin, std::ranges::less_equal(),
                                        [](const Piece& one) { return one.range.end; });
  for (std::int64_t at = range.begin; at < range.end; at = piece->range.end, ++piece) {
    const std::int64_t end = std::min(range.end, piece->range.end);
    const auto to = into.subspan(static_cast<std::size_t>(at - range.begin),
                                 static_cast<std::size_t>(end - at));
    const auto from = static_cast<std::size_t>(piece->first + at - piece->range.begin);
    const SafetensorsSource& source = sources_[piece->file];
    source.read(source.tensors()[piece->tensor], from * width_of(dtype),
                std::as_writable_bytes(to));
  }
}

void ShardedTensors::read(const std::string& name, ShardRange range, std::span<float> into) const {
  read_values(name, range, into, SafetensorsDtype::f32);
}

void ShardedTensors::read(const std::string& name, ShardRange range, std::span<double> into) const {
  read_values(name, range, into, SafetensorsDtype::f64);
}

void ShardedTensors::read(const std::string& name, ShardRange range,
                          std::span<std::int64_t> into) const {
  read_values(name, range, into, SafetensorsDtype::i64);
}

}  // namespace cohort::checkpoint
