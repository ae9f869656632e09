// Memory that a group hands out, and collectives on arrays in it: the same results as elsewhere,
// whether all ranks' arrays stand in the same place or not, and whoever lets go of them when.

#include <fstream>

#include "group/group_test_support.h"

namespace cohort::group {
namespace {

using ::testing::HasSubstr;

/// More than goes with the call itself, and not a multiple of anything.
constexpr std::size_t kSharedSizes[] = {0, 1, 17, 5'003, 140'001};

/// What cannot be added exactly shows the order in which it was added.
double inexact(int rank, std::size_t i) {
  return 1.0 / static_cast<double>(i * 7 + static_cast<std::size_t>(rank) * 3 + 1);
}

double small_number(int rank, std::size_t i) {
  return static_cast<double>((i + static_cast<std::size_t>(rank)) % 3);
}

double value_for(ElementType type, int rank, std::size_t i) {
  const bool exact = type == ElementType::f32 || type == ElementType::f64;
  return exact ? inexact(rank, i) : small_number(rank, i);
}

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kKeepsWhatIsFreed = true;
#else
constexpr bool kKeepsWhatIsFreed = false;
#endif

std::ptrdiff_t resident_pages() {
  std::ptrdiff_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident;
}

OwnArray shared_array(Communicator& group, ElementType type, std::size_t size) {
  return OwnArray(group.empty(type, {static_cast<std::int64_t>(size)}));
}

OwnArray& fill_for(OwnArray& array, int rank) {
  return array.fill([&](std::size_t i) { return value_for(array.type, rank, i); });
}

/// A part of the elements of a flat array.
Array slice_of(const Array& array, std::size_t begin, std::size_t size) {
  const std::size_t width = collective::size_of(array.type);
  return {array.bytes.subspan(begin * width, size * width),
          array.type,
          {static_cast<std::int64_t>(size)},
          array.hold};
}

class SharedMemory : public ::testing::TestWithParam<TestEngine> {
 protected:
  void run(int world, const GroupBody& body) { run_group(GetParam(), world, body); }
  /// Elsewhere it is plain memory.
  static bool shares() { return GetParam().name == "inproc" || GetParam().name == "shm"; }

  using Body = std::function<void(Communicator&, ElementType, std::size_t)>;
  void for_all(const Body& body) {
    for (int world = shares() ? 1 : 3; world <= (shares() ? 5 : 3); ++world) {
      run(world, [&](Communicator& group) {
        for (const ElementType type : kTypes) {
          for (const std::size_t size : kSharedSizes) {
            SCOPED_TRACE(fmt::format("{} ranks, {} of {}", world, size, name_of(type)));
            body(group, type, size);
          }
        }
      });
    }
  }
};

TEST_P(SharedMemory, ReducesToTheSameBitsAsElsewhere) {
  for_all([](Communicator& group, ElementType type, std::size_t size) {
    OwnArray shared = shared_array(group, type, size), plain = array_of(type, size);
    for (const Combine combine : {Combine{}, Combine{.how = Reduction::max},
                                  Combine{.mean = collective::is_floating(type)}}) {
      group.all_reduce({fill_for(shared, group.rank())}, combine);
      group.all_reduce({fill_for(plain, group.rank())}, combine);
      ASSERT_TRUE(same(shared, plain));
    }
  });
}

TEST_P(SharedMemory, BroadcastsGathersAndScattersAsElsewhere) {
  for_all([](Communicator& group, ElementType type, std::size_t size) {
    const auto world = static_cast<std::size_t>(group.world());
    const int rank = group.rank();
    OwnArray shared = shared_array(group, type, size * world), plain = array_of(type, size * world);
    const int root = group.world() - 1;
    group.broadcast({fill_for(shared, rank)}, root);
    ASSERT_TRUE(same(shared, fill_for(plain, root)));
    OwnArray out = shared_array(group, type, size), expected = array_of(type, size);
    group.reduce_scatter(fill_for(shared, rank), out, {});
    group.reduce_scatter(fill_for(plain, rank), expected, {});
    ASSERT_TRUE(same(out, expected));
    std::vector<Array> parts;
    group.all_gather(slice_of(shared, 0, size), [&](std::span<const std::int64_t> rows) {
      for (const std::int64_t each : rows) parts.push_back(OwnArray(type, {each}));
      return parts;
    });
    for (std::size_t from = 0; from < world; ++from) {
      OwnArray whole = array_of(type, size);
      ASSERT_TRUE(same(parts[from], fill_for(whole, static_cast<int>(from))));
    }
  });
}

/// Fills the arrays of a list, sums them once as they are and once in memory of their own.
void expect_sums(Communicator& group, std::vector<Array> list) {
  std::vector<Array> plain;
  for (Array& each : list) {
    OwnArray array(each), copy = array_of(each.type, each.elements().size());
    fill_for(array, group.rank());
    fill_for(copy, group.rank());
    plain.push_back(copy);
  }
  group.all_reduce(list, {});
  group.all_reduce(plain, {});
  for (std::size_t i = 0; i < list.size(); ++i) ASSERT_TRUE(same(list[i], plain[i])) << i;
}

TEST_P(SharedMemory, TakesListsAndPartsOfArrays) {
  run(3, [](Communicator& group) {
    const Array large = shared_array(group, ElementType::f32, 200'000);
    const Array small = shared_array(group, ElementType::f32, 10);
    expect_sums(group, {slice_of(large, 5, 20'001), small, slice_of(large, 0, 3),
                        slice_of(large, 50'000, 0), slice_of(large, 100'000, 100'000)});
    // Not all of it.
    expect_sums(group, {slice_of(large, 0, 20'000), floats(10'000, 1)});
  });
}

// The same bytes twice in a list are reduced as if they were two arrays.
TEST_P(SharedMemory, TakesListsWhoseArraysOverlap) {
  run(2, [](Communicator& group) {
    OwnArray array = shared_array(group, ElementType::f32, 30'000);
    array.fill([](std::size_t) { return 1; });
    group.all_reduce({array, array}, {});
    EXPECT_TRUE(same(array, floats(30'000, 2)));
  });
}

// Each rank another piece, or another part of it, or other memory.
TEST_P(SharedMemory, NeedNotBeInTheSamePlaceOnAllRanks) {
  run(3, [](Communicator& group) {
    const Array one = shared_array(group, ElementType::f32, 100'000);
    const Array other = shared_array(group, ElementType::f32, 100'000);
    const auto rank = static_cast<std::size_t>(group.rank());
    expect_sums(group, {rank == 1 ? other : one});
    expect_sums(group, {slice_of(one, rank, 50'000)});
    expect_sums(group, {rank == 2 ? static_cast<Array>(floats(100'000, 1)) : one});
    expect_sums(group, {slice_of(one, rank == 0 ? 0 : 40'000, 40'000),
                        slice_of(one, rank == 0 ? 40'000 : 0, 40'000)});
    OwnArray from = rank == 0 ? OwnArray(one) : OwnArray(other);
    group.broadcast({from.fill([&](std::size_t) { return rank + 4; })}, 1);
    EXPECT_TRUE(same(from, floats(100'000, 5)));
  });
}

TEST_P(SharedMemory, MayBeUsedByStartedCalls) {
  run(3, [](Communicator& group) {
    std::vector<OwnArray> arrays;
    std::vector<std::shared_ptr<Pending>> started;
    for (int i = 0; i < 6; ++i) {
      arrays.push_back(shared_array(group, ElementType::f32, i % 2 == 0 ? 50'000 : 100));
      arrays.back().fill([&](std::size_t) { return i + 1; });
      started.push_back(group.start_all_reduce({arrays.back()}, {}));
    }
    for (int i = 5; i >= 0; --i) {
      const auto index = static_cast<std::size_t>(i);
      group.wait(*started[index]);
      EXPECT_TRUE(same(arrays[index], floats(arrays[index].elements().size(), 3 * (i + 1))));
    }
  });
}

// What was started keeps what it works on, however soon a rank lets go of it.
TEST_P(SharedMemory, MayBeLetGoOfWhileOthersUseIt) {
  run(3, [](Communicator& group) {
    for (int round = 0; round < 10; ++round) {
      OwnArray array = shared_array(group, ElementType::f32, 20'000);
      array.fill([&](std::size_t) { return round + group.rank(); });
      if (group.rank() == round % 3) {
        const auto started = group.start_all_reduce({std::move(array)}, {});
        array = floats(1, 0);
        group.wait(*started);
        continue;
      }
      group.all_reduce({array}, {});
      EXPECT_TRUE(same(array, floats(20'000, 3 * round + 3)));
    }
  });
}

TEST_P(SharedMemory, IsHandedOutAgainOnceAllRanksHaveLetGo) {
  if (!shares()) return;
  run(3, [](Communicator& group) {
    const auto data = [](const Array& array) { return array.bytes.data(); };
    auto first = shared_array(group, ElementType::f32, 100'000);
    const std::byte* const place = data(first);
    first = floats(1, 0);
    group.barrier();
    auto second = shared_array(group, ElementType::i32, 100'000);
    EXPECT_EQ(data(second), place);
    // One of them keeps it.
    const auto kept = group.rank() == 1 ? second : floats(1, 0);
    second = floats(1, 0);
    group.barrier();
    auto third = shared_array(group, ElementType::f32, 100'000);
    EXPECT_NE(data(third), place);
    auto small = shared_array(group, ElementType::u8, 100);
    auto beside = shared_array(group, ElementType::u8, 128);
    EXPECT_EQ(data(small) + 128, data(beside)) << "small ones share pages";
  });
}

// However different the sizes are, what is kept is bounded. (Threads of one process keep all, and ASan
// keeps of what was let go of up to 256 MiB.)
TEST_P(SharedMemory, OfALoopDoesNotGrowForEver) {
  if (GetParam().name == "inproc") return;
  run(2, [](Communicator& group) {
    const auto before = resident_pages();
    for (std::size_t i = 0; i < 100; ++i) {
      OwnArray array = shared_array(group, ElementType::u8, (1 << 20) + 5'000 * i);
      array.fill([](std::size_t) { return 1; });
    }
    const std::ptrdiff_t megabytes = kKeepsWhatIsFreed ? 80 : 40;
    EXPECT_LT(resident_pages() - before, megabytes << 8) << "of 120 MiB for each rank";
  });
}

TEST_P(SharedMemory, OutlivesItsGroup) {
  MeetingPlace place = GetParam().place(2);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      auto whole = std::make_shared<Communicator>(place.membership(rank), quick_options());
      auto part = whole->split(0, -rank);
      OwnArray array = shared_array(*part, ElementType::f32, 50'000);
      part->all_reduce({array.fill([&](std::size_t) { return rank + 1; })}, {});
      part.reset();
      whole.reset();
      EXPECT_TRUE(same(array, floats(50'000, 3)));
    });
  }
}

// Memory of the whole is another's for a part, and the other way round.
TEST_P(SharedMemory, OfAPartIsTheParts) {
  run(4, [](Communicator& group) {
    const auto half = group.split(group.rank() / 2, 0);
    const Array whole = shared_array(group, ElementType::f32, 50'000);
    const Array part = shared_array(*half, ElementType::f32, 50'000);
    expect_sums(*half, {part});
    expect_sums(*half, {whole});
    expect_sums(group, {part});
    expect_sums(group, {whole});
  });
}

TEST_P(SharedMemory, WithoutRoomIsAnErrorOnAllAndTheGroupGoesOn) {
  run(3, [](Communicator& group) {
    for (const int power : {40, 46, 62}) {
      const Error error =
          failure_of([&] { group.empty(ElementType::u8, {std::int64_t{1} << power}); });
      EXPECT_EQ(error.code(), ErrorCode::no_space) << error.what();
      EXPECT_THAT(error.what(), HasSubstr(" MiB on every rank"));
    }
    EXPECT_THROW(group.empty(ElementType::f32, {std::int64_t{1} << 62}), Error);
    expect_sums(group, {shared_array(group, ElementType::f32, 20'000)});
  });
}

INSTANTIATE_TEST_SUITE_P(Engines, SharedMemory, ::testing::ValuesIn(test_engines()), engine_name);

}  // namespace
}  // namespace cohort::group
