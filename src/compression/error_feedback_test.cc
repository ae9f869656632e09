// Proves that nothing is lost in the long run with any codec, that momentum is that of plain
// references, and that a message that never arrived can be taken back.

#include "compression/error_feedback.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "compression/codec_test_support.h"

namespace cohort::compression {
namespace {

constexpr std::size_t kCount = 5003;

ErrorFeedback feedback(const std::string& kind, ErrorFeedback::Options options = {}) {
  return {make_codec(compression(kind), test_shape(), 1), kCount, options};
}

class FeedbackOfEveryCodec : public ::testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Kinds, FeedbackOfEveryCodec, ::testing::ValuesIn(codec_kinds()),
                         [](const auto& kind) { return kind.param; });

/// What went in is what came out and the rest, message after message.
TEST_P(FeedbackOfEveryCodec, LosesNothing) {
  auto sender = feedback(GetParam());
  std::vector<double> sent(kCount), received(kCount);
  for (int round = 0; round < 30; ++round) {
    const auto values = normal_values(kCount, 100 + round);
    const auto said = decoded(sender.codec(), sender.encode(values), kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
      sent[i] += values[i];
      received[i] += said[i];
    }
  }
  for (std::size_t i = 0; i < kCount; ++i) {
    ASSERT_NEAR(sent[i], received[i] + sender.rest()[i], 1e-3) << i;
  }
}

double norm(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * value;
  return std::sqrt(sum);
}

/// The rest stays bounded: the longer a direction lasts, the better the sum of the messages is.
TEST_P(FeedbackOfEveryCodec, TracksAConstantVector) {
  auto sender = feedback(GetParam());
  const auto values = normal_values(kCount, 3);
  constexpr int kRounds = 200;
  for (int round = 0; round < kRounds; ++round) sender.encode(values);
  EXPECT_LT(norm(sender.rest()), 0.15 * kRounds * norm(values));
}

TEST_P(FeedbackOfEveryCodec, RecoversFromOneBadVector) {
  auto sender = feedback(GetParam());
  auto values = normal_values(kCount, 4);
  values[0] = std::nanf("");
  values[20] = std::numeric_limits<float>::infinity();
  sender.encode(values);
  for (const float rest : sender.rest()) ASSERT_TRUE(std::isfinite(rest));
}

TEST(ErrorFeedback, KeepsNothingWhenToldSo) {
  auto sender = feedback("topk", {.keep_rest = false});
  const auto values = normal_values(kCount, 5);
  const auto first = sender.encode(values);
  const std::vector<std::byte> kept(first.begin(), first.end());
  EXPECT_TRUE(std::ranges::equal(sender.encode(values), kept));
  EXPECT_TRUE(sender.rest().empty());
}

TEST(ErrorFeedback, RefusesVectorsOfAnotherLength) {
  auto sender = feedback("sign");
  EXPECT_EQ(error_of([&] { sender.encode(normal_values(kCount + 1, 6)); }), ErrorCode::invalid);
}

/// Deep gradient compression written plainly: u = m u + g, v = v + u, the k largest of v travel,
/// and where they do u and v start anew.
class PlainMomentumCorrection {
 public:
  PlainMomentumCorrection(std::size_t count, std::size_t kept)
      : kept_(kept), u_(count), v_(count) {}

  std::vector<float> next(const std::vector<float>& gradients, float momentum) {
    std::vector<std::pair<float, std::size_t>> order;
    for (std::size_t i = 0; i < u_.size(); ++i) {
      u_[i] = momentum * u_[i] + gradients[i];
      v_[i] += u_[i];
      order.emplace_back(-std::abs(v_[i]), i);
    }
    std::ranges::sort(order);
    std::vector<float> sent(u_.size());
    for (std::size_t k = 0; k < kept_; ++k) {
      const std::size_t i = order[k].second;
      sent[i] = v_[i];
      u_[i] = v_[i] = 0;
    }
    return sent;
  }

 private:
  std::size_t kept_;
  std::vector<float> u_, v_;
};

TEST(ErrorFeedback, CorrectsMomentumAsThePlainReferenceDoes) {
  auto sender = feedback("topk", {.momentum = {.factor = 0.9}});
  PlainMomentumCorrection reference(kCount, 251);  // ceil(0.05 * 5003)
  for (int round = 0; round < 20; ++round) {
    const auto gradients = normal_values(kCount, 200 + round);
    const auto said = decoded(sender.codec(), sender.encode(gradients), kCount);
    ASSERT_EQ(said, reference.next(gradients, 0.9F)) << "round " << round;
  }
}

/// Nesterov's goes one step further: what travels is g + m u.
TEST(ErrorFeedback, NesterovsMomentumLooksAhead) {
  for (const bool keeps : {true, false}) {
    ErrorFeedback sender(make_codec({.kind = "fp16"}, {.count = 1}, 1), 1,
                         {.keep_rest = keeps, .momentum = {.factor = 0.5, .nesterov = true}});
    const std::vector<float> gradients = {4};
    const auto next = [&] { return decoded(sender.codec(), sender.encode(gradients), 1)[0]; };
    EXPECT_EQ(next(), 6);
    EXPECT_EQ(next(), 7);
    EXPECT_EQ(next(), 7.5F);
    sender.undo();
    EXPECT_EQ(next(), 7.5F);
    EXPECT_EQ(sender.velocity()[0], 7);
  }
}

TEST(WorkerMomentum, StepsAsSgdDoes) {
  std::vector<float> velocity = {2, -1};
  std::vector<float> gradient = {1, 3};
  apply_momentum({.factor = 0.5}, velocity, gradient);
  EXPECT_EQ(velocity, (std::vector<float>{2, 2.5F}));
  EXPECT_EQ(gradient, velocity);
  gradient = {1, 1};
  apply_momentum({.factor = 0.5, .nesterov = true}, velocity, gradient);
  EXPECT_EQ(velocity, (std::vector<float>{2, 2.25F}));
  EXPECT_EQ(gradient, (std::vector<float>{2, 2.125F}));
}

TEST(ErrorFeedback, MomentumWithoutTheRest) {
  ErrorFeedback sender(make_codec({.kind = "topk", .ratio = 0.5}, {.count = 2}, 1), 2,
                       {.keep_rest = false, .momentum = {.factor = 0.5}});
  const std::vector<float> gradients = {4, 3};
  const auto next = [&] { return decoded(sender.codec(), sender.encode(gradients), 2); };
  EXPECT_EQ(next(), (std::vector<float>{4, 0}));
  EXPECT_EQ(next(), (std::vector<float>{0, 4.5F}));
  EXPECT_EQ(next(), (std::vector<float>{6, 0}));
}

/// Of a codec that chooses nothing the momentum goes on: in the long run its messages add up to
/// what momentum makes of the gradients.
TEST(ErrorFeedback, MomentumStaysWhereNoPlacesAreChosen) {
  auto sender = feedback("sign", {.momentum = {.factor = 0.9}});
  std::vector<double> velocity(kCount);
  std::vector<double> left(kCount);  // Of the velocities so far, what no message has said.
  for (int round = 0; round < 20; ++round) {
    const auto gradients = normal_values(kCount, 300 + round);
    const auto said = decoded(sender.codec(), sender.encode(gradients), kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
      velocity[i] = 0.9 * velocity[i] + gradients[i];
      left[i] += velocity[i] - said[i];
      ASSERT_NEAR(sender.velocity()[i], velocity[i], 1e-4) << "round " << round;
      ASSERT_NEAR(sender.rest()[i], left[i], 1e-3) << "round " << round;
    }
  }
}

/// One that goes on from another's rest and memory makes the messages the other would make.
TEST_P(FeedbackOfEveryCodec, GoesOnWhereAnotherStopped) {
  const bool corrects = GetParam() == "topk" || GetParam() == "sign";
  const ErrorFeedback::Options options{.momentum = {.factor = corrects ? 0.9 : 0}};
  auto never_stopped = feedback(GetParam(), options);
  for (int round = 0; round < 5; ++round) never_stopped.encode(normal_values(kCount, round));
  auto resumed = feedback(GetParam(), options);
  resumed.codec().recall(never_stopped.codec().memory());
  resumed.start_from(never_stopped.rest(), never_stopped.velocity());
  for (int round = 5; round < 8; ++round) {
    const auto values = normal_values(kCount, round);
    const auto wanted = never_stopped.encode(values);
    EXPECT_TRUE(std::ranges::equal(resumed.encode(values), wanted));
  }
}

TEST_P(FeedbackOfEveryCodec, ForgetsAMessageThatNeverArrived) {
  const bool corrects = GetParam() == "topk" || GetParam() == "sign";
  const ErrorFeedback::Options options{.momentum = {.factor = corrects ? 0.9 : 0}};
  auto sender = feedback(GetParam(), options);
  const auto copy = [](std::span<const float> floats) {
    return std::vector<float>(floats.begin(), floats.end());
  };
  sender.encode(normal_values(kCount, 1));
  sender.keep();
  const auto rest = copy(sender.rest());
  const auto velocity = copy(sender.velocity());
  sender.undo();
  EXPECT_EQ(copy(sender.rest()), rest) << "the first message has arrived";
  sender.encode(normal_values(kCount, 2));
  EXPECT_TRUE(GetParam() == "none" || rest != copy(sender.rest()));
  sender.undo();
  EXPECT_EQ(copy(sender.rest()), rest);
  EXPECT_EQ(copy(sender.velocity()), velocity);
  sender.undo();
  EXPECT_EQ(copy(sender.rest()), rest);
}

TEST(ErrorFeedback, IgnoresTheMemoryOfAnotherShape) {
  for (const std::string& kind : codec_kinds()) {
    auto codec = make_codec(compression(kind), test_shape(), 1);
    codec->recall({.floats = {1, 1, 1}, .numbers = {5}});
    codec->recall({.floats = codec->memory().floats, .numbers = {5, 6}});
    codec->recall({});
    EXPECT_EQ(message_of(*codec, normal_values(kCount, 1)),
              message_of(*make_codec(compression(kind), test_shape(), 1), normal_values(kCount, 1)))
        << kind;
  }
}

}  // namespace
}  // namespace cohort::compression
