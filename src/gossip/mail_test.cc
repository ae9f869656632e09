// What both kinds of mail promise, over every codec, topology and kind of boxes: weight is
// conserved, no gradient is lost, models become their mean.

#include "gossip/mail.h"

#include <cohort/error.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numeric>

#include "gossip/boxes/boxes_test_support.h"
#include "gossip/boxes/peer_boxes.h"
#include "gossip/mail_test_support.h"

namespace cohort::gossip {
namespace {

using ::testing::HasSubstr;

struct Case {
  std::string codec;
  Topology topology;
  bool shared;
};

std::string name_of(const Case& one) {
  return one.codec + "_" + topology_table()[static_cast<std::size_t>(one.topology)].name +
         (one.shared ? "_shared" : "_remote");
}

std::vector<Case> cases(const std::vector<std::string>& codecs,
                        const std::vector<Topology>& topologies) {
  std::vector<Case> all;
  for (const auto& codec : codecs) {
    for (const Topology topology : topologies) {
      for (const bool shared : {true, false}) all.push_back({codec, topology, shared});
    }
  }
  return all;
}

const std::vector<Topology> kTopologies = {Topology::all, Topology::ring, Topology::random,
                                           Topology::exponential};

MeetingOptions meeting_options(int world) {
  return {.key = "meet", .world = world, .deadline = Deadline::in_seconds(60)};
}

// When everybody sends and then everybody merges, nothing is ever replaced: the sum of weight times
// model stays, and all models become its mean.
TEST(ParameterMail, MakesAllModelsTheirMean) {
  for (const Topology topology : kTopologies) {
    for (const int world : {2, 3, 5}) {
      const auto mail = [&](int rank) {
        return ParameterMail(mail_options("none", topology, rank, world), {});
      };
      std::vector<ParameterMail> mails;
      std::vector<Floats> models;
      double mean = 0;
      for (int rank = 0; rank < world; ++rank) {
        mails.push_back(mail(rank));
        models.push_back(random_floats(rank));
        mean += models.back()[0] / world;
      }
      BoxesGroup group(true, world,
                       {.topology = topology, .message_bytes = mails[0].message_bytes()});
      for (int turn = 0; turn < 40; ++turn) {
        for (std::size_t rank = 0; rank < models.size(); ++rank) {
          mails[rank].send(*group.boxes[rank], models[rank]);
        }
        for (std::size_t rank = 0; rank < models.size(); ++rank) {
          mails[rank].merge(*group.boxes[rank], models[rank]);
        }
        double weights = 0;
        for (const auto& one : mails) weights += one.weight();
        ASSERT_NEAR(weights, world, 1e-9);
      }
      for (std::size_t rank = 0; rank < models.size(); ++rank) {
        EXPECT_NEAR(models[rank][0], mean, 1e-3) << name_of({"none", topology, true}) << world;
        EXPECT_LT(*mails[rank].distance(), 1e-3);
      }
    }
  }
}

class EveryParameterMail : public ::testing::TestWithParam<Case> {};

// Threads that send and merge as they please: weight is neither made nor lost.
TEST_P(EveryParameterMail, ConservesWeight) {
  const auto& [codec, topology, shared] = GetParam();
  for (const int world : {1, 2, 4}) {
    const auto bytes =
        ParameterMail(mail_options(codec, topology, 0, world), random_floats(0)).message_bytes();
    BoxesGroup group(shared, world, {.topology = topology, .message_bytes = bytes});
    std::vector<double> weights(static_cast<std::size_t>(world));
    BoxesGroup::run(world, [&](int rank) {
      PeerBoxes& boxes = group.of(rank);
      Floats model = random_floats(0);
      ParameterMail mail(mail_options(codec, topology, rank, world), model);
      for (int turn = 0; turn < 100; ++turn) {
        for (float& value : model) value += 0.01F * static_cast<float>(rank - 1);
        mail.send(boxes, model);
        EXPECT_GT(mail.weight(), 0);
        mail.merge(boxes, model);
      }
      come_together(boxes, group.store, meeting_options(world), [&] { mail.merge(boxes, model); });
      weights[static_cast<std::size_t>(rank)] = mail.weight();
      for (const float value : model) EXPECT_TRUE(std::isfinite(value));
    });
    EXPECT_NEAR(std::accumulate(weights.begin(), weights.end(), 0.0), world, 1e-9);
  }
}

INSTANTIATE_TEST_SUITE_P(Mail, EveryParameterMail,
                         ::testing::ValuesIn(cases({"none", "fp16", "bf16", "int8", "topk"},
                                                   kTopologies)),
                         [](const auto& test) { return name_of(test.param); });

TEST(ParameterMail, TopkSendsWhatHasChangedMost) {
  const Floats start(kMailFloats, 1);
  BoxesGroup group(true, 2, {.topology = Topology::all, .message_bytes = 4096});
  ParameterMail sender(mail_options("topk", Topology::all, 0, 2), start);
  ParameterMail receiver(mail_options("topk", Topology::all, 1, 2), start);
  Floats changed = start;
  for (std::size_t i = 0; i < 20; ++i) changed[i] = 2;  // Twice as many as go into one message.
  Floats other = start;
  sender.send(group.of(0), changed);
  sender.send(group.of(0), changed);  // The box is full: nothing is lost.
  receiver.merge(group.of(1), other);
  EXPECT_EQ(std::ranges::count_if(other, [](float value) { return value > 1; }), 10);
  sender.send(group.of(0), changed);
  receiver.merge(group.of(1), other);
  EXPECT_EQ(std::ranges::count_if(other, [](float value) { return value > 1; }), 20);
  EXPECT_NEAR(sender.weight() + receiver.weight(), 2, 1e-12);
}

TEST(ParameterMail, KeepsAWeightWhenNobodyAnswers) {
  BoxesGroup group(true, 2, {.topology = Topology::ring, .message_bytes = 4096});
  ParameterMail sender(mail_options("none", Topology::ring, 0, 2), {});
  Floats model = random_floats(0);
  for (int turn = 0; turn < 5000; ++turn) {
    model[0] = static_cast<float>(turn);
    sender.send(group.of(0), model);
  }
  EXPECT_GT(sender.weight(), 0.5) << "most of it is not with who does not read";
  const auto taken = group.of(1).take(0);
  EXPECT_NEAR(taken->weight() + sender.weight(), 1, 1e-12);
  EXPECT_EQ(*reinterpret_cast<const float*>(taken->message().data()), 4999);
}

TEST(ParameterMail, RefusesCodecsThatParametersCannotUse) {
  try {
    ParameterMail mail(mail_options("sign", Topology::all, 0, 2), {});
    FAIL() << "took it";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid);
    EXPECT_THAT(error.what(), HasSubstr("none, fp16, bf16, int8 or topk"));
  }
}

class EveryGradientMail : public ::testing::TestWithParam<Case> {};

/// Powers of two add up exactly, in any order.
double rate_of(int rank, int turn) {
  return (1 + rank) * (turn % 2 == 0 ? 0.25 : 0.5);
}

// Everybody gets the sum of what all others sent, in the boxes or as leftovers, and knows of which
// pieces of work it is.
TEST_P(EveryGradientMail, LosesNothing) {
  const auto& [codec, topology, shared] = GetParam();
  constexpr int kTurns = 60;
  for (const int world : {1, 2, 4}) {
    const auto options_of = [&, codec = codec](int rank) {
      return mail_options(codec, Topology::all, rank, world);
    };
    BoxesGroup group(
        shared, world,
        {.topology = Topology::all, .message_bytes = GradientMail(options_of(0)).message_bytes()});
    std::vector<Floats> sums(static_cast<std::size_t>(world), Floats(kMailFloats));
    std::vector<Pieces> pieces(sums.size());
    std::mutex mutex;
    BoxesGroup::run(world, [&](int rank) {
      PeerBoxes& boxes = group.of(rank);
      Floats& sum = sums[static_cast<std::size_t>(rank)];
      Floats collected(kMailFloats);
      Pieces arrived;
      GradientMail mail(options_of(rank));
      for (int turn = 0; turn < kTurns; ++turn) {
        mail.send(boxes, random_floats(rank), rate_of(rank, turn));
        arrived += mail.collect(boxes, collected);
      }
      come_together(boxes, group.store, meeting_options(world),
                    [&] { arrived += mail.collect(boxes, collected); });
      const std::lock_guard lock(mutex);
      pieces[static_cast<std::size_t>(rank)] += arrived;
      for (std::size_t i = 0; i < kMailFloats; ++i) sum[i] += collected[i];
      for (const int peer : targets_of(Topology::all, rank, world)) {
        const auto to = static_cast<std::size_t>(peer);
        pieces[to] += mail.add_leftovers(peer, sums[to]);
      }
      mail.forget_leftovers();
      EXPECT_FALSE(mail.has_leftovers());
    });
    for (int rank = 0; rank < world; ++rank) {
      double rates = 0;
      for (int sent = 0; sent < kTurns * world; ++sent) {
        if (sent / kTurns != rank) rates += rate_of(sent / kTurns, sent % kTurns);
      }
      EXPECT_DOUBLE_EQ(pieces[static_cast<std::size_t>(rank)].count, kTurns * (world - 1));
      EXPECT_DOUBLE_EQ(pieces[static_cast<std::size_t>(rank)].rates, rates);
      for (std::size_t i = 0; i < kMailFloats; ++i) {
        double expected = 0;
        for (int other = 0; other < world; ++other) {
          if (other != rank) expected += kTurns * random_floats(other)[i];
        }
        ASSERT_NEAR(sums[static_cast<std::size_t>(rank)][i], expected, 0.02) << rank << ' ' << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Mail, EveryGradientMail,
                         ::testing::ValuesIn(cases({"none", "fp16", "bf16", "int8", "sign", "topk",
                                                    "lowrank"},
                                                   {Topology::all})),
                         [](const auto& test) { return name_of(test.param); });

// What is carried into the next group is what a peer that lives was not told.
TEST(GradientMail, ALostPeerTakesNothingOfWhatOthersWereNotTold) {
  const MailOptions options = mail_options("fp16", Topology::all, 0, 3);
  GradientMail mail(options);
  BoxesGroup group(true, 3, {.topology = Topology::all, .message_bytes = mail.message_bytes()});
  group.of(2).attendance().leave();
  const Floats gradients = random_floats(1);
  for (const double rate : {0.5, 0.25, 0.75}) mail.send(group.of(0), gradients, rate);
  // The first is in the box of rank 1, the other two wait until it is taken.
  EXPECT_DOUBLE_EQ(mail.leftover_pieces().count, 2);
  EXPECT_DOUBLE_EQ(mail.leftover_pieces().rates, 1);
  const auto carried = mail.mean_leftovers();
  EXPECT_DOUBLE_EQ(carried.pieces, 2);
  EXPECT_DOUBLE_EQ(carried.rate, 0.5);
  for (std::size_t i = 0; i < kMailFloats; ++i) {
    EXPECT_NEAR(carried.gradients[i], 2 * gradients[i], 2e-3);
  }
}

TEST(GradientMail, WhereAPartOfEveryPieceWasToldTheRestIsOfTheLastRate) {
  GradientMail mail(mail_options("topk", Topology::all, 0, 2));
  BoxesGroup group(true, 2, {.topology = Topology::all, .message_bytes = mail.message_bytes()});
  mail.send(group.of(0), random_floats(1), 0.25);
  ASSERT_TRUE(mail.has_leftovers());
  EXPECT_DOUBLE_EQ(mail.leftover_pieces().count, 1);
  EXPECT_DOUBLE_EQ(mail.leftover_pieces().rates, 0.25);
}

}  // namespace
}  // namespace cohort::gossip
