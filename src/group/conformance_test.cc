// What a group promises on every engine: every operation on all types, with sizes around every edge
// (none, one, odd, several rounds), for 1 to 5 ranks, and the same bytes on all of them.

#include <sys/mman.h>

#include "group/group_test_support.h"

namespace cohort::group {
namespace {

/// More than one round of stages for the smallest type. Sanitizers take their time.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr std::size_t kLarge = 140'001;
#else
constexpr std::size_t kLarge = 300'001;
#endif
/// More than goes with the call itself, but for the smallest types; one round.
constexpr std::size_t kMiddle = 5'003;
constexpr std::size_t kSizes[] = {0, 1, 17, kMiddle, kLarge};
constexpr int kMostRanks = 5;
/// Large ones for one number of ranks, to save time: one that sizes cannot be divided by.
constexpr int kWorldOfLarge = 3;

/// 1, 2 or 3 (a boolean: 0 or not), so that products of all ranks fit into every type.
double contribution(ElementType type, int rank, std::size_t i) {
  const std::uint64_t mixed = (i + 1) * 0x9e3779b97f4a7c15ULL ^
                              static_cast<std::uint64_t>(rank + 1) * 0xd1b54a32d192ed03ULL;
  const auto value = static_cast<double>((mixed * mixed >> 40) % 3);
  return type == ElementType::boolean ? value : value + 1;
}

double combined(Reduction how, double a, double b) {
  switch (how) {
    case Reduction::sum:
      return a + b;
    case Reduction::product:
      return a * b;
    case Reduction::min:
      return std::min(a, b);
    case Reduction::max:
      return std::max(a, b);
  }
  return 0;
}

/// As doubles; a boolean's sum is "or", its product "and".
double expected(ElementType type, Reduction how, int world, std::size_t i) {
  double result = contribution(type, 0, i);
  for (int rank = 1; rank < world; ++rank) {
    result = combined(how, result, contribution(type, rank, i));
  }
  return result;
}

OwnArray given_by(ElementType type, int rank, std::size_t size) {
  return array_of(type, size).fill([=](std::size_t i) { return contribution(type, rank, i); });
}

OwnArray reduction_of_all(ElementType type, Reduction how, int world, std::size_t size) {
  return array_of(type, size).fill([=](std::size_t i) { return expected(type, how, world, i); });
}

std::vector<Reduction> reductions_for(std::size_t size) {
  if (size == kLarge) return {Reduction::sum};
  return {Reduction::sum, Reduction::product, Reduction::min, Reduction::max};
}

class GroupConformance : public ::testing::TestWithParam<TestEngine> {
 protected:
  /// With groups of every size; `body` gets every type and size of arrays.
  using Body = std::function<void(Communicator&, ElementType, std::size_t)>;
  void for_all(const Body& body) {
    // Of two ranks on one host there is nothing composed.
    for (int world = GetParam().pairs ? 3 : 1; world <= kMostRanks; ++world) {
      run_group(GetParam(), world, [&](Communicator& group) {
        for (const ElementType type : kTypes) {
          for (const std::size_t size : kSizes) {
            if (size == kLarge && world != kWorldOfLarge) continue;
            SCOPED_TRACE(fmt::format("{} ranks, {} of {}", world, size, name_of(type)));
            body(group, type, size);
          }
        }
      });
    }
  }
  void run(int world, const GroupBody& body) { run_group(GetParam(), world, body); }
};

TEST_P(GroupConformance, AllReducesEveryTypeAndSize) {
  for_all([](Communicator& group, ElementType type, std::size_t size) {
    for (const Reduction how : reductions_for(size)) {
      const OwnArray array = given_by(type, group.rank(), size);
      group.all_reduce({array}, {.how = how});
      ASSERT_TRUE(same(array, reduction_of_all(type, how, group.world(), size)))
          << collective::name_of(how);
    }
  });
}

TEST_P(GroupConformance, ReduceScattersEveryTypeAndSize) {
  for_all([](Communicator& group, ElementType type, std::size_t size) {
    const auto world = static_cast<std::size_t>(group.world());
    for (const Reduction how : reductions_for(size)) {
      const OwnArray out = array_of(type, size / world);
      const OwnArray given = given_by(type, group.rank(), size / world * world);
      group.reduce_scatter(given, out, {.how = how});
      const std::size_t begin = static_cast<std::size_t>(group.rank()) * (size / world);
      ASSERT_TRUE(same(out, array_of(type, size / world).fill([&](std::size_t i) {
        return expected(type, how, group.world(), begin + i);
      }))) << collective::name_of(how);
    }
  });
}

TEST_P(GroupConformance, BroadcastsEveryTypeAndSizeFromEveryRank) {
  for_all([](Communicator& group, ElementType type, std::size_t size) {
    for (int root = 0; root < group.world(); ++root) {
      const OwnArray array = given_by(type, group.rank(), size);
      group.broadcast({array}, root);
      ASSERT_TRUE(same(array, given_by(type, root, size))) << "from " << root;
    }
  });
}

/// What every rank gives, each with as many rows as `rows` says.
void expect_gathered(Communicator& group, const Array& given, std::int64_t width,
                     const std::function<std::int64_t(int)>& rows) {
  std::vector<Array> parts;
  group.all_gather(given, [&](std::span<const std::int64_t> all) {
    for (const std::int64_t each : all) parts.push_back(OwnArray(given.type, {each, width}));
    return parts;
  });
  for (int rank = 0; rank < group.world(); ++rank) {
    OwnArray whole(given.type, {rows(rank), width});
    whole.fill([&](std::size_t i) { return contribution(given.type, rank, i); });
    ASSERT_TRUE(same(parts[static_cast<std::size_t>(rank)], whole)) << "from " << rank;
  }
}

TEST_P(GroupConformance, GathersEveryTypeAndSizeWithEqualRowsAndOthers) {
  for_all([](Communicator& group, ElementType type, std::size_t size) {
    for (const bool equal : {true, false}) {
      if (equal && size == kLarge) continue;
      const auto rows = [&](int rank) {
        return static_cast<std::int64_t>(size / 3) * (equal ? 1 : (rank + 1) % 3);
      };
      OwnArray given(type, {rows(group.rank()), 3});
      given.fill([&](std::size_t i) { return contribution(type, group.rank(), i); });
      expect_gathered(group, given, 3, rows);
    }
  });
}

TEST_P(GroupConformance, ExchangesPartsOfEveryTypeAndSize) {
  for_all([](Communicator& group, ElementType type, std::size_t size) {
    const auto world = static_cast<std::size_t>(group.world());
    const std::size_t part = size / world;
    const OwnArray given = given_by(type, group.rank(), part * world);
    const OwnArray taken = array_of(type, part * world);
    group.all_to_all(given, taken);
    ASSERT_TRUE(same(taken, array_of(type, part * world).fill([&](std::size_t i) {
      const auto from = static_cast<int>(i / part);
      return contribution(type, from, static_cast<std::size_t>(group.rank()) * part + i % part);
    })));
  });
}

// Every rank sends to the next one, the even ones first.
TEST_P(GroupConformance, SendsEveryTypeAndSize) {
  for_all([](Communicator& group, ElementType type, std::size_t size) {
    if (group.world() == 1) return;
    const int next = (group.rank() + 1) % group.world();
    const int before = (group.rank() + group.world() - 1) % group.world();
    const OwnArray taken = array_of(type, size);
    if (group.rank() % 2 == 0) group.send(given_by(type, group.rank(), size), next);
    group.receive(taken, before);
    if (group.rank() % 2 == 1) group.send(given_by(type, group.rank(), size), next);
    ASSERT_TRUE(same(taken, given_by(type, before, size)));
  });
}

TEST_P(GroupConformance, MakesMeansOfFloats) {
  run(3, [](Communicator& group) {
    for (const ElementType type : {ElementType::f32, ElementType::f64, ElementType::bf16}) {
      for (const std::size_t size : kSizes) {
        const auto own = [&](std::size_t i) {
          return static_cast<double>(3 * group.rank() + i % 2);
        };
        const auto mean = [](std::size_t i) { return static_cast<double>(3 + i % 2); };
        const OwnArray array = array_of(type, size).fill(own);
        group.all_reduce({array}, {.mean = true});
        ASSERT_TRUE(same(array, array_of(type, size).fill(mean))) << name_of(type);
        const OwnArray given = array_of(type, 3 * size).fill([&](std::size_t i) {
          return own(i % std::max<std::size_t>(size, 1));
        });
        const OwnArray out = array_of(type, size);
        group.reduce_scatter(given, out, {.mean = true});
        ASSERT_TRUE(same(out, array_of(type, size).fill(mean))) << name_of(type);
      }
    }
  });
}

// What cannot be added exactly shows the order; all ranks must have taken the same one.
TEST_P(GroupConformance, GivesAllRanksTheSameBits) {
  std::vector<OwnArray> results(4, floats(0, 0));
  run(4, [&](Communicator& group) {
    results[static_cast<std::size_t>(group.rank())] =
        array_of(ElementType::f32, kMiddle).fill([&](std::size_t i) {
          return 1.0 / static_cast<double>(i + 3 * static_cast<std::size_t>(group.rank()) + 1);
        });
    group.all_reduce({results[static_cast<std::size_t>(group.rank())]}, {});
  });
  for (const OwnArray& result : results) EXPECT_TRUE(same(result, results.front()));
}

TEST_P(GroupConformance, TakesListsOfTensorsAtOnce) {
  run(3, [](Communicator& group) {
    for (const ElementType type : kTypes) {
      std::vector<Array> list, sums, first;
      for (const std::size_t size : {std::size_t{3}, std::size_t{0}, kMiddle, std::size_t{1}}) {
        list.push_back(given_by(type, group.rank(), size));
        sums.push_back(reduction_of_all(type, Reduction::sum, group.world(), size));
        first.push_back(reduction_of_all(type, Reduction::sum, group.world(), size));
      }
      group.all_reduce(list, {});
      for (std::size_t i = 0; i < list.size(); ++i) EXPECT_TRUE(same(list[i], sums[i])) << i;
      if (group.rank() != 1) std::ranges::fill(list[2].bytes, std::byte{});
      group.broadcast(list, 1);
      for (std::size_t i = 0; i < list.size(); ++i) EXPECT_TRUE(same(list[i], first[i])) << i;
    }
    group.all_reduce({}, {});
    group.broadcast({}, 0);
  });
}

TEST_P(GroupConformance, TakesTensorsOfNoDimensionAndOfMany) {
  run(2, [](Communicator& group) {
    OwnArray scalar(ElementType::f32, {});
    scalar.fill([&](std::size_t) { return group.rank() + 1; });
    group.all_reduce({scalar}, {});
    OwnArray three(ElementType::f32, {});
    EXPECT_TRUE(same(scalar, three.fill([](std::size_t) { return 3; })));
    const OwnArray deep(ElementType::i32, {1, 2, 1, 2, 1, 2, 1, 2, 1, 2});
    group.all_reduce({deep}, {});
    std::vector<Array> parts;
    group.all_gather(scalar, [&](std::span<const std::int64_t> rows) {
      EXPECT_THAT(rows, ::testing::ElementsAre(1, 1));
      parts = {OwnArray(ElementType::f32, {}), OwnArray(ElementType::f32, {})};
      return parts;
    });
    EXPECT_TRUE(same(parts[1], three));
  });
}

// Nobody leaves a barrier before all have come.
TEST_P(GroupConformance, HoldsBackAtABarrier) {
  std::atomic<int> came = 0;
  run(4, [&](Communicator& group) {
    for (int round = 1; round <= 20; ++round) {
      ++came;
      group.barrier();
      EXPECT_GE(came, 4 * round);
      group.barrier();
    }
  });
}

TEST_P(GroupConformance, RefusesWhatIsWrongByItselfAndGoesOn) {
  run(2, [](Communicator& group) {
    const auto refused = [](const std::function<void()>& call) {
      EXPECT_EQ(failure_of(call).code(), ErrorCode::invalid);
    };
    const OwnArray four = floats(4, 1), two = floats(2, 1);
    const OwnArray ints = array_of(ElementType::i32, 4);
    refused([&] { group.all_reduce({ints}, {.mean = true}); });
    refused([&] { group.all_reduce({four}, {.how = Reduction::max, .mean = true}); });
    refused([&] { group.all_reduce({four, ints}, {}); });
    refused([&] { group.all_reduce({array_of(ElementType::byte, 4)}, {}); });
    refused([&] { group.broadcast({four}, 2); });
    refused([&] { group.broadcast({four}, -1); });
    refused([&] { group.send(four, group.rank()); });
    refused([&] { group.receive(four, 2); });
    refused([&] { group.reduce_scatter(four, four, {}); });
    refused([&] { group.reduce_scatter(ints, two, {}); });
    refused([&] { group.all_to_all(floats(3, 1), floats(3, 1)); });
    refused([&] { group.all_to_all(four, two); });
    Array cut = four;
    cut.bytes = cut.bytes.first(8);
    refused([&] { group.all_reduce({cut}, {}); });
    group.all_reduce({four}, {});
    EXPECT_TRUE(same(four, floats(4, 2)));
  });
}

// What is not to be read does not even have to be there.
TEST_P(GroupConformance, OneRankLeavesWhatItWouldChangeAsItIs) {
  if (GetParam().pairs) return;
  constexpr std::size_t kBytes = 1 << 20;
  const std::shared_ptr<void> memory(
      ::mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
      [](void* begin) { ::munmap(begin, kBytes); });
  const Array array{.bytes = {static_cast<std::byte*>(memory.get()), kBytes},
                    .shape = {kBytes / sizeof(float)}};
  const Array few{.bytes = array.bytes.first(64), .shape = {16}};
  run(1, [&](Communicator& group) {
    for (const auto& arrays : std::vector<std::vector<Array>>{{array}, {few}, {array, few}}) {
      group.all_reduce(arrays, {});
      group.broadcast(arrays, 0);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Engines, GroupConformance, ::testing::ValuesIn(test_engines()),
                         engine_name);

}  // namespace
}  // namespace cohort::group
