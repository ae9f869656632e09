// Memory that outlives an engine (SharedRegions::lasting_region): it passes from group to group,
// grows and shrinks, by ranks that are threads and change their numbers.

#include "transport/engine.h"

#include <gmock/gmock.h>

#include <latch>
#include <thread>

#include "cluster/store.h"
#include "transport/inproc/inproc.h"
#include "transport/ranks_test_support.h"

namespace cohort::transport {
namespace {

constexpr std::size_t kPage = 4096;

/// Ranks that are threads, each with its hold on memory that outlives their engines. They meet in
/// one group after the other, in whose order they are ranks.
class Groups {
 public:
  explicit Groups(std::size_t workers) : holds_(workers) {}

  /// `body` gets the rank and the region of `pages`.
  void meet(const std::vector<std::size_t>& workers, std::size_t pages,
            const std::function<void(int, std::span<std::byte>)>& body) {
    cluster::PrefixStore store(all_, std::to_string(groups_++) + "/");
    std::latch done(static_cast<std::ptrdiff_t>(workers.size()));
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < workers.size(); ++rank) {
      threads.emplace_back([&, rank] {
        const auto engine = make_engine({.name = "shm",
                                         .rank = static_cast<int>(rank),
                                         .world = static_cast<int>(workers.size()),
                                         .address = "",
                                         .cores = 2},
                                        store, soon());
        auto& hold = holds_[workers[rank]];
        const auto region = engine->shared_regions()->lasting_region(pages * kPage, hold, soon());
        body(static_cast<int>(rank), region);
        done.arrive_and_wait();
      });
    }
  }

  std::shared_ptr<os::SharedMemory>& hold(std::size_t worker) { return holds_[worker]; }

 private:
  cluster::MemoryStore all_;
  int groups_ = 0;
  std::vector<std::shared_ptr<os::SharedMemory>> holds_;
};

TEST(LastingRegion, IsTheNextGroupsWithWhatStandsInIt) {
  Groups groups(4);
  groups.meet({0, 1, 2}, 50, [](int rank, std::span<std::byte> region) {
    region[static_cast<std::size_t>(rank) * kPage] = std::byte{9};
  });
  for (const std::size_t pages : {50, 40, 60}) {
    std::size_t in_use = 0;
    groups.meet({2, 0, 3}, pages, [&](int rank, std::span<std::byte> region) {
      for (std::size_t page = 0; page < 3; ++page) EXPECT_EQ(region[page * kPage], std::byte{9});
      EXPECT_EQ(region.size(), pages * kPage);
      if (rank == 0) in_use = groups.hold(2)->bytes_in_use();
    });
    EXPECT_EQ(in_use, pages * kPage) << "one region, of the size it needs";
  }
}

TEST(LastingRegion, IsNewWhereRankZeroBringsNone) {
  Groups groups(2);
  groups.meet({0}, 2, [](int, std::span<std::byte> region) { region[0] = std::byte{1}; });
  groups.meet({1, 0}, 2,
              [](int, std::span<std::byte> region) { EXPECT_EQ(region[0], std::byte{0}); });
}

TEST(LastingRegion, IsGoneOnInByOneWhoIsLeftAlone) {
  Groups groups(2);
  groups.meet({0, 1}, 3, [](int, std::span<std::byte> region) { region[0] = std::byte{4}; });
  InprocHub hub(1);
  const auto engine = hub.engine(0);
  const auto region = engine->shared_regions()->lasting_region(2 * kPage, groups.hold(1), soon());
  EXPECT_EQ(region[0], std::byte{4});
  EXPECT_EQ(groups.hold(1)->bytes_in_use(), 2 * kPage);
  std::shared_ptr<os::SharedMemory> none;
  EXPECT_EQ(engine->shared_regions()->lasting_region(kPage, none, soon())[0], std::byte{0});
  EXPECT_EQ(none, nullptr);
}

}  // namespace
}  // namespace cohort::transport
