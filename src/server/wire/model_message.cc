#include "server/wire/model_message.h"

#include <algorithm>
#include <limits>

#include "base/fail.h"
#include "server/wire/message_bytes.h"

namespace cohort::server {
namespace {

/// More than any machine has room for, and few enough that their bytes can be counted.
constexpr std::size_t kMostFloats = std::size_t{1} << 44;

void check_floats(const ShardShape& shape) {
  std::size_t left = kMostFloats;
  const auto take = [&](std::size_t floats) {
    if (floats > left) fail(ErrorCode::corrupt, "A model has more floats than it can have.");
    left -= floats;
  };
  take(shape.dense);
  for (const TableShape& table : shape.tables) take(table.floats());
}

/// Pieces are counted by step * parts + part, which must have room.
void check_work(const cluster::WorkLeft& work) {
  const auto is_piece = [&](const cluster::Claim& claim) {
    return claim.step >= 0 && claim.step < std::numeric_limits<std::int64_t>::max() / work.parts &&
           claim.part >= 0 && claim.part < work.parts;
  };
  if (work.next < 0 || work.parts < 1 || !std::ranges::all_of(work.again, is_piece)) {
    fail(ErrorCode::corrupt, "A model says that work is left which no training has.");
  }
}

/// Counts are checked against the bytes there are, and sizes against what can be, before anything
/// is made of them.
ShardShape take_shape(MessageReader& reader) {
  ShardShape shape;
  shape.dense = reader.take<std::uint64_t>();
  const auto tables = reader.take<std::uint64_t>();
  const auto matrices = reader.take<std::uint64_t>();
  for (const compression::MatrixShape& matrix :
       reader.take_all<compression::MatrixShape>(matrices)) {
    shape.matrices.push_back(matrix);
  }
  if (tables > reader.rest().size() / sizeof(TableShape)) {
    fail(ErrorCode::corrupt, "A model names more tables than it can have.");
  }
  for (std::uint64_t i = 0; i < tables; ++i) {
    shape.tables.push_back(reader.take<TableShape>());
    if (shape.tables.back().end_row < shape.tables.back().first_row) {
      fail(ErrorCode::corrupt, "A table of a model ends before it begins.");
    }
  }
  check_floats(shape);
  return shape;
}

}  // namespace

void write_shape(std::vector<std::byte>& bytes, const ShardShape& shape) {
  append(bytes, std::uint64_t{shape.dense});
  append(bytes, std::uint64_t{shape.tables.size()});
  append(bytes, std::uint64_t{shape.matrices.size()});
  append_all(bytes, std::span(shape.matrices));
  append_all(bytes, std::span(shape.tables));
}

ShardShape read_shape(std::span<const std::byte> bytes) {
  MessageReader reader(bytes);
  return take_shape(reader);
}

void write_model(std::vector<std::byte>& bytes, const ModelMessage& model) {
  append(bytes, model.version);
  append(bytes, std::uint64_t{model.slots});
  append(bytes, model.work.next);
  append(bytes, model.work.parts);
  append(bytes, std::uint64_t{model.work.again.size()});
  append_all(bytes, std::span(model.work.again));
  write_shape(bytes, model.shape);
}

ModelMessage take_model_head(MessageReader& reader) {
  ModelMessage model;
  model.version = reader.take<std::uint64_t>();
  model.slots = reader.take<std::uint64_t>();
  if (model.slots > kMostSlots) {
    fail(ErrorCode::corrupt, "A model has {} slots for each of its floats.", model.slots);
  }
  model.work.next = reader.take<std::int64_t>();
  model.work.parts = reader.take<std::int64_t>();
  const auto again = reader.take_all<cluster::Claim>(reader.take<std::uint64_t>());
  model.work.again.assign(again.begin(), again.end());
  check_work(model.work);
  model.shape = take_shape(reader);
  return model;
}

void write_model_part(std::vector<std::byte>& bytes, const ModelPart& part) {
  append(bytes, part.begin);
  append(bytes, part.count);
}

ModelPart read_model_part(std::span<const std::byte> bytes) {
  MessageReader reader(bytes);
  ModelPart part;
  part.begin = reader.take<std::uint64_t>();
  part.count = reader.take<std::uint64_t>();
  if (!reader.rest().empty()) part.floats = reader.take_all<float>(part.count);
  if (!reader.rest().empty()) {
    fail(ErrorCode::corrupt, "A part of a model goes on after the {} floats it was said to have.",
         part.count);
  }
  return part;
}

ModelMessage read_model_message(std::span<const std::byte> bytes) {
  MessageReader reader(bytes);
  ModelMessage model = take_model_head(reader);
  model.floats = reader.take_all<float>(reader.rest().size() / sizeof(float));
  if (!reader.rest().empty()) {
    fail(ErrorCode::corrupt, "A model's floats do not end where its message does.");
  }
  return model;
}

void write_codec_memory(std::vector<std::byte>& bytes, const compression::CodecMemory& memory) {
  append(bytes, std::uint64_t{memory.floats.size()});
  append(bytes, std::uint64_t{memory.numbers.size()});
  append_all(bytes, std::span(memory.floats));
  append_all(bytes, std::span(memory.numbers));
}

compression::CodecMemory take_codec_memory(MessageReader& message) {
  const auto floats = message.take<std::uint64_t>();
  const auto numbers = message.take<std::uint64_t>();
  compression::CodecMemory memory;
  const auto values = message.take_all<float>(floats);
  memory.floats.assign(values.begin(), values.end());
  // Floats before them may leave them where whole numbers cannot be read in place.
  for (std::uint64_t i = 0; i < numbers; ++i) {
    memory.numbers.push_back(message.take<std::int64_t>());
  }
  return memory;
}

}  // namespace cohort::server
