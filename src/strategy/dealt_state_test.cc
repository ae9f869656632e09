// Checkpoints of one number of workers dealt to another: sums of leftovers stay what they were,
// views are copied or averaged, and every worker's share follows from the files alone.

#include "strategy/dealt_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "strategy/own_memory_forms.h"

namespace cohort::strategy {
namespace {

using testing::ElementsAre;

constexpr std::size_t kFloats = 5;

std::vector<float> all_of(float value) {
  return std::vector<float>(kFloats, value);
}

/// What each of `saved` workers had, as `state_of` says, in the hands of `world`.
template <class StateOf>
std::vector<tensor::TrainingState> dealt(int saved, int world, const StateOf& state_of) {
  std::vector<tensor::TrainingState> all;
  for (int rank = 0; rank < world; ++rank) {
    DealtState state({.rank = rank, .world = world, .saved = saved});
    for (int from = 0; from < saved; ++from) state.add(from, state_of(from));
    all.push_back(state.take());
  }
  return all;
}

tensor::TrainingState compressed(int from) {
  tensor::TrainingState state;
  state.own = CompressionMemory{.compression = "topk",
                                .exchange = {.rest = all_of(1.0F + static_cast<float>(from)),
                                             .velocity = all_of(10.0F * static_cast<float>(from))}}
                  .as_own();
  return state;
}

struct Sums {
  float rest = 0;
  float velocity = 0;
};

Sums sums_of(const std::vector<tensor::TrainingState>& states) {
  Sums sums;
  for (const tensor::TrainingState& state : states) {
    const auto memory = CompressionMemory::read(&state);
    if (!memory) continue;
    EXPECT_EQ(memory->compression, "topk");
    sums.rest += std::accumulate(memory->exchange.rest.begin(), memory->exchange.rest.end(), 0.0F);
    sums.velocity +=
        std::accumulate(memory->exchange.velocity.begin(), memory->exchange.velocity.end(), 0.0F);
  }
  return sums;
}

TEST(DealtState, WhatAllReduceLeftOutHasTheSameSumWithAnyNumberOfWorkers) {
  for (int saved = 1; saved <= 5; ++saved) {
    const Sums before = sums_of(dealt(saved, saved, compressed));
    EXPECT_GT(before.rest, 0);
    for (int world = 1; world <= 6; ++world) {
      const Sums after = sums_of(dealt(saved, world, compressed));
      EXPECT_EQ(after.rest, before.rest) << saved << " to " << world;
      EXPECT_EQ(after.velocity, before.velocity) << saved << " to " << world;
    }
  }
}

TEST(DealtState, AWorkerThatIsLeftHasWhatFallsToIt) {
  const auto two = dealt(5, 2, compressed);
  EXPECT_EQ(CompressionMemory::read(&two[0])->exchange.rest, all_of(1 + 3 + 5));
  EXPECT_EQ(CompressionMemory::read(&two[1])->exchange.rest, all_of(2 + 4));
  const auto one = dealt(3, 1, compressed);
  EXPECT_EQ(CompressionMemory::read(&one[0])->exchange.velocity, all_of(0 + 10 + 20));
}

TEST(DealtState, WhatPushesLeftOutHasTheSameSum) {
  const auto pushed = [](int from) {
    tensor::TrainingState state;
    state.link = own_of_link({.rest = all_of(static_cast<float>(from + 1)),
                              .velocity = all_of(2),
                              .has = all_of(7),
                              .codecs = {{}, {}}},
                             "int8");
    return state;
  };
  for (const int world : {1, 2, 3, 7}) {
    float rest = 0, velocity = 0;
    for (const tensor::TrainingState& state : dealt(4, world, pushed)) {
      const auto link = link_of(state.link, "int8");
      if (!link) continue;
      EXPECT_TRUE(link->has.empty()) << "the servers send the parameters themselves";
      rest += link->rest[0];
      velocity += link->velocity[0];
    }
    EXPECT_EQ(rest, 1 + 2 + 3 + 4) << world;
    EXPECT_EQ(velocity, 8) << world;
  }
}

TEST(DealtState, VelocitiesOfPiecesAreSharedEvenly) {
  const auto pushing = [](int from) {
    tensor::TrainingState state;
    set_own(state, kOwnVelocity, {all_of(static_cast<float>(4 * from))});
    return state;
  };
  for (const tensor::TrainingState& state : dealt(3, 2, pushing)) {
    EXPECT_EQ(own_floats(&state, kOwnVelocity)[0], all_of((0 + 4 + 8) / 2.0F));
  }
  for (const tensor::TrainingState& state : dealt(3, 4, pushing)) {
    EXPECT_EQ(own_floats(&state, kOwnVelocity)[0], all_of((0 + 4 + 8) / 4.0F));
  }
}

tensor::TrainingState averaging(int from) {
  tensor::TrainingState state;
  state.step = 20;
  state.updates = 20 + from;
  state.slots = {all_of(static_cast<float>(from)), all_of(1)};
  state.buffers = {static_cast<float>(from)};
  return state;
}

TEST(DealtState, InnerOptimizersBecomeTheMeanOrACopy) {
  const auto fewer = dealt(4, 2, averaging);
  EXPECT_THAT(fewer[0].slots, ElementsAre(all_of(1), all_of(1))) << "of 0 and 2";
  EXPECT_THAT(fewer[1].slots, ElementsAre(all_of(2), all_of(1))) << "of 1 and 3";
  EXPECT_EQ(fewer[1].updates, 23);
  EXPECT_THAT(fewer[1].buffers, ElementsAre(2));
  const auto more = dealt(2, 5, averaging);
  for (std::size_t rank = 0; rank < 5; ++rank) {
    EXPECT_EQ(more[rank].slots[0], all_of(static_cast<float>(rank % 2))) << rank;
    EXPECT_EQ(more[rank].step, 20);
  }
}

TEST(DealtState, GossipsModelsBecomeTheMeanWithTheMeanOfTheirAges) {
  const auto gossiping = [](int from) {
    tensor::TrainingState state;
    state.parameters = all_of(static_cast<float>(from));
    state.own = {.meaning = std::string(kModelAge), .doubles = {10.0 + from}};
    state.work = {.next = 40 + from, .parts = 2, .again = {}};
    state.step = 20;
    return state;
  };
  const auto two = dealt(4, 2, gossiping);
  EXPECT_EQ(two[1].parameters, all_of(2));
  EXPECT_EQ(two[1].own.doubles, std::vector{12.0});
  EXPECT_EQ(two[1].work.next, 43);
  EXPECT_EQ(two[1].step, 21);
}

TEST(DealtState, GradientsThatWereNotToldAreAddedUp) {
  const auto gossiping = [](int from) {
    tensor::TrainingState state;
    state.own = {.meaning = std::string(kUntoldGradients),
                 .floats = {all_of(static_cast<float>(from + 1))},
                 .doubles = {static_cast<double>(from + 1), 0.1}};
    return state;
  };
  for (const int world : {1, 2, 5}) {
    float gradients = 0;
    double pieces = 0;
    for (const tensor::TrainingState& state : dealt(3, world, gossiping)) {
      if (state.own.empty()) continue;
      gradients += state.own.floats[0][0];
      pieces += state.own.doubles[0];
      EXPECT_DOUBLE_EQ(state.own.doubles[1], 0.1);
    }
    EXPECT_EQ(gradients, 6) << world;
    EXPECT_EQ(pieces, 6) << world;
  }
}

TEST(DealtState, WhatTheServersHaveStaysAsItIs) {
  const auto pushing = [](int from) {
    tensor::TrainingState state;
    state.step = from == 0 ? 20 : 25;  // Others have only heard of some.
    state.work = {.next = 40 + 10 * from, .parts = 2, .again = {}};
    if (from > 0) return state;
    state.parameters = all_of(3);
    state.work.again = {{20, 0}};
    set_own(state, kOuterSlots, {all_of(9)});
    return state;
  };
  const tensor::TrainingState chief = dealt(3, 1, pushing)[0];
  EXPECT_EQ(chief.parameters, all_of(3));
  EXPECT_EQ(chief.step, 20);
  EXPECT_EQ(chief.work.next, 40);
  EXPECT_EQ(chief.work.again.size(), 1U);
  EXPECT_EQ(own_floats(&chief, kOuterSlots)[0], all_of(9));
}

// A checkpoint may say anything: what is of different things is not added up.
TEST(DealtState, LeavesOutWhatMeansSomethingElse) {
  const auto mixed = [](int from) {
    if (from == 2) return compressed(from);
    tensor::TrainingState state;
    if (from == 0) {
      set_own(state, kOuterSlots, {all_of(9)});
    } else {
      state.own = {
          .meaning = std::string(kUntoldGradients), .floats = {all_of(1)}, .doubles = {1.0, 0.1}};
    }
    return state;
  };
  const tensor::TrainingState only = dealt(3, 1, mixed)[0];
  EXPECT_EQ(own_floats(&only, kOuterSlots)[0], all_of(9));
  const auto other_way = [&](int from) { return mixed(2 - from); };
  EXPECT_FLOAT_EQ(sums_of(dealt(3, 1, other_way)).rest, 3.0F * kFloats);
}

}  // namespace
}  // namespace cohort::strategy
