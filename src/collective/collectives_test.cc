// The calls, by every algorithm, in groups of up to eight ranks that are threads: what each must do
// with a buffer, and that a root outside the group is refused.

#include "collective/collectives.h"

#include <cohort/error.h>
#include <gmock/gmock.h>

#include <atomic>

#include "collective/algorithms.h"
#include "collective/rank_threads_test_support.h"

namespace cohort::collective {
namespace {

using testing::Each;

constexpr int kWorlds[] = {1, 2, 3, 4, 5, 8};
constexpr std::size_t kCount = 1000;

CollectiveOptions options(const std::string& algorithm = "auto") {
  return {.deadline = Deadline::in_seconds(60), .tag = 5, .algorithm = algorithm};
}

/// Rank r contributes r + 1 everywhere.
std::vector<float> buffer_of(int rank) {
  return std::vector<float>(kCount, static_cast<float>(rank + 1));
}

float sum_of_all(int world) {
  return static_cast<float>(world * (world + 1)) / 2;
}

TEST(Collectives, AllReduceSums) {
  for (const int world : kWorlds) {
    run_ranks(world, [&](transport::Transport& transport) {
      Executor executor(transport);
      auto buffer = buffer_of(transport.rank());
      all_reduce(executor, buffer, options());
      EXPECT_THAT(buffer, Each(sum_of_all(world)));
    });
  }
}

TEST(Collectives, ReduceScatterThenAllGatherIsAnAllReduce) {
  for (const std::string& algorithm : segment_algorithms()) {
    for (const int world : kWorlds) {
      run_ranks(world, [&](transport::Transport& transport) {
        Executor executor(transport);
        auto buffer = buffer_of(transport.rank());
        const Segment own = reduce_scatter(executor, buffer, options(algorithm));
        EXPECT_EQ(own, segment_of(kCount, world, transport.rank()));
        EXPECT_THAT(std::vector<float>(buffer.begin() + own.begin, buffer.begin() + own.end),
                    Each(sum_of_all(world)));
        all_gather(executor, buffer, options(algorithm));
        EXPECT_THAT(buffer, Each(sum_of_all(world)));
      });
    }
  }
}

TEST(Collectives, ReduceAndBroadcastWorkFromAnyRoot) {
  for (const int world : kWorlds) {
    run_ranks(world, [&](transport::Transport& transport) {
      Executor executor(transport);
      for (int root = 0; root < world; ++root) {
        auto buffer = buffer_of(transport.rank());
        broadcast(executor, buffer, root, options());
        EXPECT_EQ(buffer, buffer_of(root));

        buffer = buffer_of(transport.rank());
        reduce(executor, buffer, root, options());
        if (transport.rank() == root) {
          EXPECT_THAT(buffer, Each(sum_of_all(world)));
        }
      }
    });
  }
}

TEST(Collectives, BarrierHoldsEveryoneUntilTheLast) {
  for (const int world : kWorlds) {
    std::atomic<int> arrived = 0;
    run_ranks(world, [&](transport::Transport& transport) {
      Executor executor(transport);
      for (int round = 1; round <= 20; ++round) {
        ++arrived;
        barrier(executor, options());
        EXPECT_GE(arrived, round * world);
        barrier(executor, options());
      }
    });
  }
}

TEST(Collectives, RefuseARootOutsideTheGroup) {
  run_ranks(1, [](transport::Transport& transport) {
    Executor executor(transport);
    std::vector<float> buffer(1);
    EXPECT_THROW(broadcast(executor, buffer, 1, options()), Error);
    EXPECT_THROW(reduce(executor, buffer, -1, options()), Error);
  });
}

}  // namespace
}  // namespace cohort::collective
