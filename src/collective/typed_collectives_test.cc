// Collectives of every type and of sizes around every edge: whole cache lines, whole chunks.

#include <cohort/error.h>
#include <gmock/gmock.h>

#include <limits>
#include <numeric>

#include "collective/algorithms.h"
#include "collective/collectives.h"
#include "collective/rank_threads_test_support.h"
#include "collective/sum_kernel.h"

namespace cohort::collective {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kWorlds[] = {1, 2, 3, 5};

CollectiveOptions options(const std::string& algorithm = "auto") {
  return {.deadline = Deadline::in_seconds(60), .tag = 5, .algorithm = algorithm};
}

/// A chunk has a mebibyte; several of them for few ranks only, to save time.
template <class T>
std::vector<std::size_t> sizes(int world) {
  constexpr std::size_t kChunk = (1 << 20) / sizeof(T);
  std::vector<std::size_t> all = {0, 1, 15, 16, 17, 1000};
  if (world == 2) all.push_back(2 * kChunk + 1);
  return all;
}

/// What rank r contributes at place i: numbers that no narrower type can hold, and whose sum over a
/// few ranks it can.
template <class T>
T contribution(int rank, std::size_t i) {
  const auto small = static_cast<std::int64_t>(i % 1000) * 10 + rank;
  if constexpr (std::same_as<T, std::byte>) return static_cast<std::byte>(small % 251);
  if constexpr (std::same_as<T, float>) return static_cast<float>(small);
  if constexpr (std::same_as<T, double>) return 0x1p30 + static_cast<double>(small);
  if constexpr (std::same_as<T, std::int64_t>) return (std::int64_t{1} << 59) + small;
}

template <class T>
std::vector<T> contributions(int rank, std::size_t size) {
  std::vector<T> all(size);
  for (std::size_t i = 0; i < size; ++i) all[i] = contribution<T>(rank, i);
  return all;
}

template <class T>
std::vector<T> sums(int world, std::size_t size) {
  std::vector<T> all(size);
  for (int rank = 0; rank < world; ++rank) {
    for (std::size_t i = 0; i < size; ++i) all[i] += contribution<T>(rank, i);
  }
  return all;
}

/// Calls the test with every world, size and (rank, executor).
template <class T, class Test>
void for_all(Test&& test) {
  for (const int world : kWorlds) {
    for (const std::size_t size : sizes<T>(world)) {
      run_ranks(world, [&](transport::Transport& transport) {
        Executor executor(transport);
        test(executor, size);
      });
    }
  }
}

template <class T>
struct TypedSums : testing::Test {};
using NumberTypes = testing::Types<float, double, std::int64_t>;
TYPED_TEST_SUITE(TypedSums, NumberTypes);

TYPED_TEST(TypedSums, AllReduceByEveryAlgorithm) {
  for (const std::string& algorithm : all_reduce_algorithms()) {
    for_all<TypeParam>([&](Executor& executor, std::size_t size) {
      auto buffer = contributions<TypeParam>(executor.rank(), size);
      all_reduce(executor, buffer, options(algorithm));
      EXPECT_EQ(buffer, sums<TypeParam>(executor.world(), size)) << algorithm << ", " << size;
    });
  }
}

TYPED_TEST(TypedSums, ReduceScatterAndReduce) {
  for_all<TypeParam>([](Executor& executor, std::size_t size) {
    const auto whole = sums<TypeParam>(executor.world(), size);
    auto buffer = contributions<TypeParam>(executor.rank(), size);
    const Segment own = reduce_scatter(executor, buffer, options());
    EXPECT_TRUE(std::equal(buffer.begin() + own.begin, buffer.begin() + own.end,
                           whole.begin() + own.begin));
    buffer = contributions<TypeParam>(executor.rank(), size);
    reduce(executor, buffer, executor.world() - 1, options());
    if (executor.rank() == executor.world() - 1) {
      EXPECT_EQ(buffer, whole);
    }
  });
}

TYPED_TEST(TypedSums, OfManySources) {
  constexpr int kSources = 9;
  const std::size_t size = 3000;
  std::vector<std::vector<TypeParam>> parts;
  std::vector<const TypeParam*> sources;
  for (int i = 0; i < kSources; ++i) parts.push_back(contributions<TypeParam>(i, size));
  for (const auto& part : parts) sources.push_back(part.data());
  sum_of<TypeParam>(parts[4], sources);  // Into one of them.
  EXPECT_EQ(parts[4], sums<TypeParam>(kSources, size));
}

template <class T>
struct TypedMoves : testing::Test {};
using ElementTypes = testing::Types<float, double, std::int64_t, std::byte>;
TYPED_TEST_SUITE(TypedMoves, ElementTypes);

TYPED_TEST(TypedMoves, BroadcastAndAllGather) {
  for_all<TypeParam>([](Executor& executor, std::size_t size) {
    const int root = executor.world() / 2;
    auto buffer = contributions<TypeParam>(executor.rank(), size);
    broadcast(executor, buffer, root, options());
    EXPECT_EQ(buffer, contributions<TypeParam>(root, size));

    const auto whole = contributions<TypeParam>(0, size);
    const Segment own = segment_of(size, executor.world(), executor.rank());
    std::vector<TypeParam> parts(size);
    std::copy(whole.begin() + own.begin, whole.begin() + own.end, parts.begin() + own.begin);
    all_gather(executor, parts, options());
    EXPECT_EQ(parts, whole);
  });
}

TYPED_TEST(TypedMoves, GatherTakesWhateverEachGives) {
  const std::size_t given[] = {3, 0, 1, 40'000, 17};
  for (const int world : kWorlds) {
    run_ranks(world, [&](transport::Transport& transport) {
      Executor executor(transport);
      const auto own = contributions<TypeParam>(transport.rank(), given[transport.rank()]);
      const auto all = gather<TypeParam>(executor, own, options());
      ASSERT_EQ(all.size(), static_cast<std::size_t>(world));
      for (int rank = 0; rank < world; ++rank) {
        EXPECT_EQ(all[static_cast<std::size_t>(rank)], contributions<TypeParam>(rank, given[rank]));
      }
    });
  }
}

// Nobody makes memory for what another one claims to have.
TEST(TypedCollectives, GatherRefusesMoreThanThereIsUseFor) {
  run_ranks(2, [](transport::Transport& transport) {
    Executor executor(transport);
    const std::size_t own = transport.rank() == 0 ? 1 : std::size_t{1} << 40;
    EXPECT_THROW(segments_to_gather(executor, own, ElementType::byte, options()), Error);
  });
}

TEST(TypedCollectives, WholeNumbersBeginAgainAtTheirEnd) {
  run_ranks(2, [](transport::Transport& transport) {
    Executor executor(transport);
    std::vector<std::int64_t> buffer = {std::numeric_limits<std::int64_t>::max(), -1};
    all_reduce(executor, buffer, options());
    EXPECT_THAT(buffer, ElementsAre(-2, -2));
  });
}

TEST(TypedCollectives, EveryAlgorithmMakesEveryReduction) {
  const auto reduced = [](const std::string& algorithm, Reduction how, int world) {
    std::vector<std::int32_t> result;
    run_ranks(world, [&](transport::Transport& transport) {
      std::vector<std::int32_t> values(100, transport.rank() + 2);
      const std::vector<int> hosts(static_cast<std::size_t>(world), 0);
      Executor(transport).run(
          all_reduce_schedule(algorithm, transport.rank(), hosts, values.size()),
          {std::as_writable_bytes(std::span(values)), ElementType::i32}, 1,
          Deadline::in_seconds(60), how);
      EXPECT_EQ(std::ranges::count(values, values.front()), 100);
      if (transport.rank() == world - 1) result = values;
    });
    return result.front();
  };
  for (const std::string& algorithm : all_reduce_algorithms()) {
    EXPECT_EQ(reduced(algorithm, Reduction::sum, 3), 9) << algorithm;
    EXPECT_EQ(reduced(algorithm, Reduction::product, 3), 24) << algorithm;
    EXPECT_EQ(reduced(algorithm, Reduction::min, 3), 2) << algorithm;
    EXPECT_EQ(reduced(algorithm, Reduction::max, 3), 4) << algorithm;
  }
}

TEST(TypedCollectives, BytesAreNotSummed) {
  static_assert(!std::constructible_from<Numbers, std::vector<std::byte>&>);
  static_assert(!std::constructible_from<Elements, std::vector<std::uint16_t>&>);
  static_assert(!std::constructible_from<Elements, const std::vector<float>&>);
  run_ranks(2, [](transport::Transport& transport) {
    Executor executor(transport);
    std::vector<std::byte> bytes(100);
    const Schedule sum = all_reduce_schedule("ring", transport.rank(), 2, bytes.size());
    try {
      executor.run(sum, bytes, 1, Deadline::in_seconds(60));
      ADD_FAILURE() << "summed";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid);
    }
  });
}

TEST(TypedCollectives, AFailureSaysHowManyOfWhat) {
  run_ranks(2, [](transport::Transport& transport) {
    if (transport.rank() == 1) return transport.close();
    Executor executor(transport);
    std::vector<double> buffer(100);
    try {
      broadcast(executor, buffer, 1, options());
      ADD_FAILURE() << "came";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("receiving 100 doubles from rank 1"));
    }
  });
}

}  // namespace
}  // namespace cohort::collective
