// A first model that comes to a server's desk in parts.

#include <gmock/gmock.h>

#include "server/door/server_desk.h"
#include "server/memory/lasting_memory.h"
#include "server/wire/shard_shape.h"

namespace cohort::server {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr std::size_t kFloats = 10;
const OptimizerOptions kAdam{.kind = "adam"};

ServerOptions options_in(std::span<std::byte> memory) {
  ServerOptions options;
  options.rules.workers = 2;
  options.rules.consistency = ShardRules::Consistency::async;
  options.rules.optimizer = kAdam;
  options.memory = memory;
  return options;
}

ModelMessage head_of(std::size_t dense, std::size_t slots) {
  ModelMessage head{.version = 7, .slots = slots};
  head.shape.dense = dense;
  return head;
}

std::vector<float> counted(std::size_t count) {
  std::vector<float> floats(count);
  for (std::size_t i = 0; i < count; ++i) floats[i] = static_cast<float>(i) + 0.5F;
  return floats;
}

ModelPart part_of(std::span<const float> floats, std::size_t begin, std::size_t count) {
  return {.begin = begin, .count = count, .floats = floats.subspan(begin, count)};
}

TEST(ModelInParts, IsThereWithItsLastFloatWhateverTheParts) {
  for (const std::size_t slots : {0, 2}) {
    const auto floats = counted(kFloats * (1 + slots));
    for (std::size_t size = 1; size <= floats.size(); ++size) {
      ServerDesk desk(options_in({}));
      desk.expect_model(1, head_of(kFloats, slots), floats.size());
      for (std::size_t begin = 0; begin < floats.size(); begin += size) {
        EXPECT_FALSE(desk.has_model());
        desk.take_part(1, part_of(floats, begin, std::min(size, floats.size() - begin)));
      }
      ASSERT_TRUE(desk.has_model());
      std::vector<float> read(kFloats * 3);
      EXPECT_EQ(desk.read(read).version, 7U);
      auto expected = floats;
      expected.resize(read.size());  // Slots that did not come are zero.
      EXPECT_EQ(read, expected) << size << " floats a part";
    }
  }
}

TEST(ModelInParts, RefusesPartsThatDoNotFollow) {
  const auto floats = counted(kFloats);
  ServerDesk desk(options_in({}));
  EXPECT_THROW(desk.take_part(0, part_of(floats, 0, 1)), Error) << "none was told of";
  desk.expect_model(0, head_of(kFloats, 0), kFloats);
  desk.take_part(0, part_of(floats, 0, 4));
  EXPECT_THROW(desk.take_part(0, part_of(floats, 0, 4)), Error) << "they have come";
  EXPECT_THROW(desk.take_part(0, part_of(floats, 5, 5)), Error) << "one is left out";
  EXPECT_THROW(desk.take_part(1, part_of(floats, 4, 6)), Error) << "of another worker";
  const auto more = counted(kFloats + 1);
  EXPECT_THROW(desk.take_part(0, part_of(more, 4, 7)), Error) << "one too many";
  EXPECT_THROW(desk.take_part(0, {.begin = 4, .count = 6}), Error) << "without floats";
  EXPECT_FALSE(desk.has_model());
  desk.take_part(0, part_of(floats, 4, 6));
  EXPECT_TRUE(desk.has_model());
  EXPECT_THROW(desk.expect_model(0, head_of(kFloats, 0), kFloats), Error) << "there is one";
}

TEST(ModelInParts, RefusesSizesThatCannotBeBeforeItTakesMemory) {
  ServerDesk desk(options_in({}));
  constexpr std::size_t kHuge = std::size_t{1} << 44;  // There is no memory for as many.
  const auto refusal = [&](const ModelMessage& head, std::size_t total) {
    EXPECT_THAT([&] { desk.expect_model(0, head, total); },
                ThrowsMessage<Error>(HasSubstr("that cannot be")));
  };
  refusal(head_of(kHuge, 0), kFloats);
  refusal(head_of(kHuge, 2), kHuge);
  refusal(head_of(kFloats, 0), kHuge);
  refusal(head_of(kFloats, 5), kFloats * 6);
  EXPECT_THAT([&] { desk.expect_model(0, head_of(~std::size_t{0} / 4, 2), 0); },
              ThrowsMessage<Error>(HasSubstr("more floats than can be")));
  const LastingMemory memory(shard_memory_bytes({.dense = kFloats}, 1, 0, kAdam));
  ServerDesk lasting(options_in(memory.bytes()));
  EXPECT_THAT([&] { lasting.expect_model(0, head_of(kHuge, 0), kHuge); },
              ThrowsMessage<Error>(HasSubstr("lasting memory")));
}

TEST(ModelInParts, ForgetsWhatHasComeOfAModelWhoseWorkerIsGone) {
  const LastingMemory memory(shard_memory_bytes({.dense = kFloats}, 1, 0, kAdam));
  const auto floats = counted(kFloats);
  {
    ServerDesk desk(options_in(memory.bytes()));
    desk.expect_model(0, head_of(kFloats, 0), kFloats);
    desk.take_part(0, part_of(floats, 0, 6));
    desk.leave(0);
    EXPECT_THROW(desk.take_part(0, part_of(floats, 6, 4)), Error);
    desk.expect_model(1, head_of(kFloats, 0), kFloats);
    desk.take_part(1, part_of(floats, 0, 9));
  }
  EXPECT_FALSE(ShardMemory::find(memory.bytes())) << "the server ended before the last float";
  ServerDesk desk(options_in(memory.bytes()));
  EXPECT_FALSE(desk.has_model());
  desk.expect_model(0, head_of(kFloats, 0), kFloats);
  desk.expect_model(1, head_of(kFloats, 0), kFloats);  // As after a lost connection.
  desk.take_part(1, part_of(floats, 0, kFloats));
  EXPECT_TRUE(std::ranges::equal(desk.shard()->dense(), floats));
}

}  // namespace
}  // namespace cohort::server
