// With a codec: what a worker has after its pulls is what the server takes it to have, and comes
// to the parameters; pushes are summed as their messages say.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "server/shard/shard_test_support.h"

namespace cohort::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Consistency = ShardRules::Consistency;

constexpr std::size_t kFloats = 600;

ShardShape shape() {
  return {.dense = kFloats, .matrices = {{.offset = 0, .rows = 20, .columns = 30}}};
}

ShardRules compressed(const std::string& kind, int workers) {
  ShardRules rules = rules_of(Consistency::async, workers);
  rules.compression.kind = kind;
  rules.compression.ratio = 0.1;
  return rules;
}

std::vector<std::byte> encoded(compression::Codec& codec, const std::vector<float>& values) {
  std::vector<std::byte> message(codec.max_bytes());
  message.resize(codec.encode(values, message));
  return message;
}

double distance(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::pow(double{a[i]} - double{b[i]}, 2);
  return std::sqrt(sum);
}

class CompressedShard : public ::testing::TestWithParam<std::string> {};

TEST_P(CompressedShard, PullsBringAWorkersCopyToTheParameters) {
  Random random(3);
  Shard shard(compressed(GetParam(), 2), shape());
  const std::vector<float> first_model = random_floats(kFloats, random);
  initialise(shard, first_model, {});
  const auto codec = compression::make_codec(compressed(GetParam(), 2).compression,
                                             {.count = kFloats, .matrices = shape().matrices}, 9);

  Call first(pull_by(1));
  first.want_message = true;
  first.submit(shard);
  EXPECT_EQ(first.pulled, first_model) << "the first pull is plain";
  ASSERT_EQ(first.message.size(), kFloats * sizeof(float));
  EXPECT_EQ(std::memcmp(first.message.data(), first_model.data(), first.message.size()), 0);

  // Another worker changes the model; only messages tell this one.
  Call push(push_and_pull(0, 1));
  push.header.pull = false;
  push.encoded = encoded(*codec, random_floats(kFloats, random));
  std::vector<float> gradient(kFloats);
  codec->decode(push.encoded, gradient);
  push.submit(shard);
  ASSERT_TRUE(push.reply && push.reply->applied);
  for (std::size_t i = 0; i < kFloats; ++i) {
    ASSERT_FLOAT_EQ(shard.dense()[i], first_model[i] - gradient[i]);
  }

  std::vector<float> copy = first.pulled;
  std::vector<float> change(kFloats);
  const double before = distance(copy, shard.dense());
  for (int pull = 0; pull < 60; ++pull) {
    Call call(pull_by(1));
    call.pulled = copy;
    call.want_message = true;
    call.submit(shard);
    EXPECT_LT(call.message.size(), kFloats * sizeof(float));
    codec->decode(call.message, change);
    for (std::size_t i = 0; i < kFloats; ++i) copy[i] += change[i];
    ASSERT_EQ(copy, call.pulled) << "the message says what the server thinks it says";
  }
  EXPECT_LT(distance(copy, shard.dense()), 1e-2 * before);
}

INSTANTIATE_TEST_SUITE_P(Codecs, CompressedShard,
                         ::testing::Values("fp16", "bf16", "int8", "sign", "topk", "lowrank"),
                         [](const auto& kind) { return kind.param; });

TEST(ShardCompression, SyncSumsWhatTheMessagesOfAllWorkersSay) {
  ShardRules rules = compressed("fp16", 2);
  rules.consistency = Consistency::sync;
  Shard shard(rules, {.dense = 2});
  initialise(shard, std::vector<float>{0, 10}, {});
  const auto codec = compression::make_codec(rules.compression, {.count = 2}, 1);
  Call first(push_and_pull(0, 1));
  first.encoded = encoded(*codec, {1, 2});
  Call second(push_and_pull(1, 1));
  second.encoded = encoded(*codec, {4, 0});
  second.submit(shard);
  Call again(push_and_pull(1, 1));
  again.encoded = second.encoded;
  again.submit(shard);
  first.submit(shard);
  EXPECT_THAT(first.pulled, ElementsAre(-5, 8));
  EXPECT_THAT(again.pulled, ElementsAre(-5, 8));
}

TEST(ShardCompression, RefusesWhatTheCodecCannotRead) {
  Shard shard(compressed("fp16", 1), {.dense = 2});
  initialise(shard, std::vector<float>{0, 10}, {});
  Call broken(push_and_pull(0, 1));
  broken.encoded.resize(3);
  broken.submit(shard);
  ASSERT_TRUE(broken.error);
  EXPECT_EQ(broken.error->code(), ErrorCode::corrupt);
  Call missing(push_and_pull(0, 1));
  missing.submit(shard);
  EXPECT_THAT(missing.error->what(), HasSubstr("pushed 0 floats"));
  EXPECT_EQ(shard.version(), 0u);
}

TEST(ShardCompression, AutoAndNoneArePlain) {
  for (const std::string kind : {"none", "auto"}) {
    Shard shard(compressed(kind, 1), {.dense = 2});
    initialise(shard, std::vector<float>{0, 10}, {});
    Call call(push_and_pull(0, 1), {1, 1});
    call.want_message = true;
    call.submit(shard);
    EXPECT_THAT(call.pulled, ElementsAre(-1, 9));
    ASSERT_EQ(call.message.size(), 2 * sizeof(float));
    EXPECT_EQ(std::memcmp(call.message.data(), call.pulled.data(), call.message.size()), 0);
  }
}

}  // namespace
}  // namespace cohort::server
