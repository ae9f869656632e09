// Models, parts of them and what codecs remember come back from bytes as they were, and bytes that
// are cut short or say what cannot be are refused.

#include "server/wire/model_message.h"

#include <cohort/error.h>
#include <gmock/gmock.h>

#include "server/wire/message_bytes.h"

namespace cohort::server {
namespace {

using testing::ElementsAre;

std::vector<std::byte> message_of(const ModelMessage& model, const std::vector<float>& floats) {
  std::vector<std::byte> bytes;
  write_model(bytes, model);
  const auto raw = std::as_bytes(std::span(floats));
  bytes.insert(bytes.end(), raw.begin(), raw.end());
  return bytes;
}

ModelMessage example() {
  return {.version = 12,
          .slots = 1,
          .work = {.next = 9, .parts = 4, .again = {{1, 3}, {2, 0}}},
          .shape = {.dense = 2, .tables = {{5, 7, 1}}, .matrices = {{0, 1, 2}}}};
}

TEST(ModelMessage, ComesBack) {
  const auto bytes = message_of(example(), {1, 2, 3});
  const ModelMessage model = read_model_message(bytes);
  EXPECT_EQ(model.version, 12U);
  EXPECT_EQ(model.slots, 1U);
  EXPECT_EQ(model.work.next, 9);
  EXPECT_EQ(model.work.parts, 4);
  EXPECT_THAT(model.work.again, ElementsAre(cluster::Claim{1, 3}, cluster::Claim{2, 0}));
  EXPECT_EQ(model.shape.dense, 2U);
  ASSERT_EQ(model.shape.tables.size(), 1U);
  EXPECT_EQ(model.shape.tables[0].end_row, 7U);
  ASSERT_EQ(model.shape.matrices.size(), 1U);
  EXPECT_EQ(model.shape.matrices[0].columns, 2U);
  EXPECT_THAT(model.floats, ElementsAre(1, 2, 3));
}

TEST(ModelPart, ComesBackWithAsManyFloatsAsItSaysOrNone) {
  const std::vector<float> floats = {1, 2, 3};
  std::vector<std::byte> bytes;
  write_model_part(bytes, {.begin = 40, .count = 3});
  EXPECT_THAT(read_model_part(bytes).floats, testing::IsEmpty());
  const auto raw = std::as_bytes(std::span(floats));
  bytes.insert(bytes.end(), raw.begin(), raw.end());
  const ModelPart part = read_model_part(bytes);
  EXPECT_EQ(part.begin, 40U);
  EXPECT_EQ(part.count, 3U);
  EXPECT_THAT(part.floats, ElementsAre(1, 2, 3));
  EXPECT_THROW(read_model_part(std::span(bytes).first(bytes.size() - 4)), Error);
  EXPECT_THROW(read_model_part(std::span(bytes).first(12)), Error);
  bytes.resize(bytes.size() + 4);
  EXPECT_THROW(read_model_part(bytes), Error);
}

TEST(ModelMessage, IsRefusedWhereItEndsTooEarly) {
  const auto bytes = message_of(example(), {});
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THROW(read_model_message(std::span(bytes).first(size)), Error) << size << " bytes";
  }
  auto odd = bytes;
  odd.push_back(std::byte{1});
  EXPECT_THROW(read_model_message(odd), Error);
}

/// Memory is laid out by these numbers, so none of them may wrap around.
TEST(ModelMessage, IsRefusedWhereItsSizesOverflow) {
  const auto refuses = [](const auto& change) {
    ModelMessage model = example();
    change(model);
    EXPECT_THROW(read_model_message(message_of(model, {})), Error);
  };
  refuses([](auto& model) { model.shape.dense = std::size_t{1} << 62; });
  refuses([](auto& model) { model.shape.dense = ~std::size_t{0}; });
  refuses([](auto& model) { model.shape.tables = {{0, 0xFFFFFFFF, 0xFFFFFFFF}}; });
  refuses([](auto& model) {
    model.shape.tables.assign(8, {0, 0xFFFFFFFF, 1 << 11});  // Each of them alone would do.
  });
  refuses([](auto& model) { model.slots = std::size_t{1} << 60; });
}

TEST(ModelMessage, SurvivesAnyByteBeingWrong) {
  const auto bytes = message_of(example(), {1, 2, 3});
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    auto wrong = bytes;
    wrong[at] = std::byte{0xFE};
    try {
      read_model_message(wrong);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::corrupt) << "byte " << at;
    }
  }
}

TEST(CodecMemory, IsReadAsItWasWritten) {
  const compression::CodecMemory memory{.floats = {1, 2, 3}, .numbers = {4, -5}};
  std::vector<std::byte> bytes;
  write_codec_memory(bytes, memory);
  MessageReader whole(bytes);
  EXPECT_EQ(take_codec_memory(whole), memory);
  EXPECT_TRUE(whole.rest().empty());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const std::span<const std::byte> first(bytes.data(), size);
    MessageReader cut(first);
    EXPECT_THROW(take_codec_memory(cut), Error) << size;
  }
}

}  // namespace
}  // namespace cohort::server
