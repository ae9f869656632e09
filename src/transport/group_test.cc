// Groups of ranks of every shape, on every engine, between threads and between processes.

#include <cohort/error.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <iterator>
#include <latch>
#include <numeric>

#include "cluster/socket_store.h"
#include "transport/composed/composed.h"
#include "transport/gloo/gloo.h"
#include "transport/inproc/inproc.h"
#include "transport/rank_group.h"
#include "transport/shm/shm.h"
#include "transport/transport_test_support.h"

namespace cohort::transport {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kWorld = 6;

using MakeEngine = std::function<std::unique_ptr<Engine>(int rank, cluster::Store& store)>;
using EngineBody = std::function<void(Engine&)>;

EngineOptions options_of(int rank) {
  return {.name = "", .rank = rank, .world = kWorld, .address = "127.0.0.1", .cores = 2};
}

/// An engine as if the ranks were on these hosts.
using Factory = std::unique_ptr<Engine> (*)(const EngineOptions&, const Peers&, cluster::Store&,
                                            Deadline);
MakeEngine made_by(Factory factory, const std::vector<int>& hosts) {
  return [=](int rank, cluster::Store& store) {
    return factory(options_of(rank), {.rank = rank, .hosts = hosts}, store, soon());
  };
}

void run_engine(int rank, cluster::Store& store, const MakeEngine& make, const EngineBody& body) {
  try {
    const auto engine = make(rank, store);
    body(*engine);
  } catch (const std::exception& error) {
    ADD_FAILURE() << "rank " << rank << ": " << error.what();
  }
}

void run_as_threads(const MakeEngine& make, const EngineBody& body) {
  cluster::MemoryStore store;
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < kWorld; ++rank) {
    threads.emplace_back([&, rank] { run_engine(rank, store, make, body); });
  }
}

void run_as_processes(const MakeEngine& make, const EngineBody& body) {
  cluster::StoreServer server(cluster::Pass::draw());
  std::fflush(nullptr);
  std::vector<pid_t> pids;
  for (int rank = 0; rank < kWorld; ++rank) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::alarm(240);
      cluster::SocketStore store(server.endpoint(), server.pass(), soon(), {.number = rank});
      run_engine(rank, store, make, body);
      std::fflush(nullptr);
      ::_exit(::testing::Test::HasFailure() ? 1 : 0);
    }
    pids.push_back(pid);
  }
  server.start();
  for (const pid_t pid : pids) {
    int status = -1;
    ::waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0) << "its own report is above";
  }
}

/// What each rank of the transport says, by rank. Some say it in a message that fills rings.
std::vector<int> exchange(Transport& transport, int own, std::size_t size) {
  const std::vector<int> mine(size, own);
  std::vector<std::vector<int>> said(static_cast<std::size_t>(transport.size()),
                                     std::vector<int>(size, -1));
  std::vector<OperationPtr> operations;
  for (int peer = 0; peer < transport.size(); ++peer) {
    if (peer == transport.rank()) continue;
    auto& from = said[static_cast<std::size_t>(peer)];
    operations.push_back(transport.irecv(peer, 7, std::as_writable_bytes(std::span(from))));
  }
  for (int peer = 0; peer < transport.size(); ++peer) {
    if (peer == transport.rank()) continue;
    operations.push_back(transport.isend(peer, 7, std::as_bytes(std::span(mine))));
  }
  for (const auto& operation : operations) transport.wait(*operation, soon());
  said[static_cast<std::size_t>(transport.rank())] = mine;
  std::vector<int> all;
  for (const auto& values : said) {
    EXPECT_EQ(std::ranges::count(values, values.front()), std::ssize(values));
    all.push_back(values.front());
  }
  return all;
}

/// Pairs, rows and columns of a mesh, overlapping ones, all in another order, and each alone.
std::vector<std::vector<int>> shapes() {
  std::vector<std::vector<int>> all = {{0, 1}, {2, 5}, {0, 1, 2, 3}, {3, 2, 1}, {5, 4, 3, 2, 1, 0}};
  const Mesh mesh{.data = 3, .pipeline = 1, .tensor = 2};
  for (const Axis axis : {Axis::data, Axis::tensor}) {
    for (int rank = 0; rank < kWorld; ++rank) {
      const auto line = mesh.line(rank, axis);
      if (line.front() == rank) all.push_back(line);
    }
  }
  for (int rank = 0; rank < kWorld; ++rank) all.push_back({rank});
  return all;
}

void meet_in_every_shape(Engine& engine) {
  for (const std::vector<int>& ranks : shapes()) {
    const auto place = std::ranges::find(ranks, engine.rank());
    if (place == ranks.end()) continue;
    const auto group = engine.group(ranks, soon());
    EXPECT_EQ(group->rank(), place - ranks.begin());
    EXPECT_EQ(group->world(), static_cast<int>(ranks.size()));
    EXPECT_EQ(group->hosts().size(), ranks.size());
    EXPECT_EQ(group->hosts().front(), 0);
    // Two groups of the same ranks, and two connections of each, do not hear each other.
    const auto again = engine.group(ranks, soon());
    const auto first = group->connect(soon());
    const auto second = group->connect(soon());
    const auto third = again->connect(soon());
    EXPECT_EQ(exchange(*third, engine.rank(), 1), ranks);
    EXPECT_EQ(exchange(*second, engine.rank(), 1), ranks);
    EXPECT_EQ(exchange(*first, engine.rank(), 100'000), ranks);
  }
}

struct NamedEngine {
  std::string name;
  MakeEngine make;
};

std::vector<NamedEngine> engines() {
  const std::vector<int> one_host(kWorld, 0);
  return {{"shm", made_by(make_shm_engine, one_host)},
          {"gloo", made_by(make_gloo_engine, one_host)},
          {"composed_even", made_by(make_composed_engine, {0, 0, 0, 1, 1, 1})},
          {"composed_uneven", made_by(make_composed_engine, {0, 1, 0, 2, 0, 1})}};
}

class EngineGroups : public testing::TestWithParam<NamedEngine> {};

TEST_P(EngineGroups, OfEveryShapeBetweenThreads) {
  run_as_threads(GetParam().make, meet_in_every_shape);
}

TEST_P(EngineGroups, OfEveryShapeBetweenProcesses) {
  run_as_processes(GetParam().make, meet_in_every_shape);
}

TEST_P(EngineGroups, OfGroups) {
  run_as_threads(GetParam().make, [](Engine& engine) {
    const std::vector<int> odd = {5, 3, 1};
    if (engine.rank() % 2 == 0) return;
    const auto group = engine.group(odd, soon());
    if (group->rank() == 1) return;
    const std::vector<int> ends = {2, 0};  // Ranks 1 and 5.
    const auto pair = group->group(ends, soon());
    EXPECT_THAT(exchange(*pair->connect(soon()), engine.rank(), 1), ElementsAre(1, 5));
  });
}

// The loss of one is seen in its groups, by its rank there, and nowhere else.
TEST_P(EngineGroups, LoseOnlyWhoIsInThem) {
  run_as_processes(GetParam().make, [](Engine& engine) {
    const std::vector<int> left = {0, 1, 2}, right = {3, 5, 4};
    const bool is_left = engine.rank() < 3;
    const auto group = engine.group(is_left ? left : right, soon());
    const auto transport = group->connect(soon());
    exchange(*transport, engine.rank(), 1);
    if (engine.rank() == 5) ::_exit(0);
    if (is_left) {
      EXPECT_EQ(exchange(*transport, engine.rank(), 100'000), left);
      return;
    }
    try {
      exchange(*transport, engine.rank(), 100'000);
      ADD_FAILURE() << "rank 5 is gone";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::peer_lost) << error.what();
      EXPECT_TRUE(error.rank() && *error.rank() >= 0 && *error.rank() < 3) << error.what();
    }
  });
}

TEST_P(EngineGroups, RefuseListsThatAreNone) {
  run_as_threads(GetParam().make, [](Engine& engine) {
    const int other = engine.rank() == 0 ? 1 : 0;
    const int own = engine.rank();
    const std::vector<std::vector<int>> wrong = {{}, {other}, {own, own}, {own, 6}, {-1, own}};
    for (const std::vector<int>& ranks : wrong) {
      EXPECT_THROW(engine.group(ranks, soon()), Error);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, EngineGroups, testing::ValuesIn(engines()),
                         [](const auto& info) { return info.param.name; });

TEST(InprocGroups, OfEveryShape) {
  InprocHub hub(kWorld);
  run_as_threads([&](int rank, cluster::Store&) { return hub.engine(rank); }, meet_in_every_shape);
}

/// Every member of a group adds its rank in memory that they share.
void add_in_shared_memory(Engine& group, std::span<const int> ranks, int own) {
  SharedRegions* regions = group.shared_regions();
  ASSERT_NE(regions, nullptr);
  const auto region = regions->region(4096, soon());
  const auto transport = group.connect(soon());
  auto& sum = *reinterpret_cast<std::atomic<int>*>(region.data());
  sum += own;
  exchange(*transport, 0, 1);
  EXPECT_EQ(sum, std::accumulate(ranks.begin(), ranks.end(), 0));
  exchange(*transport, 0, 1);
}

TEST(EngineGroups, OfOneHostShareMemoryAlsoWhereTheWholeDoesNot) {
  run_as_processes(made_by(make_composed_engine, {0, 0, 0, 1, 1, 1}), [](Engine& engine) {
    EXPECT_EQ(engine.shared_regions(), nullptr);
    EXPECT_THAT(engine.hosts(), ElementsAre(0, 0, 0, 1, 1, 1));
    const std::vector<int> left = {0, 1, 2}, right = {5, 3, 4};
    const auto& mine = engine.rank() < 3 ? left : right;
    const auto host = engine.group(mine, soon());
    EXPECT_EQ(host->name(), "shm");
    add_in_shared_memory(*host, mine, engine.rank());
    const std::vector<int> lane = {engine.rank() % 3, 3 + engine.rank() % 3};
    const auto between = engine.group(lane, soon());
    EXPECT_EQ(between->name(), "gloo");
    EXPECT_THAT(between->hosts(), ElementsAre(0, 1));
  });
}

TEST(EngineTable, EveryEngineSaysWhetherItCanWork) {
  const Peers together{.rank = 0, .hosts = {0, 0}};
  const Peers apart{.rank = 0, .hosts = {0, 1}};
  const Peers mixed{.rank = 2, .hosts = {0, 0, 1}};
  const auto can = [](const Peers& peers) {
    std::vector<std::string> names;
    for (const EngineRow& row : engine_table()) {
      if (row.objection(peers).empty()) names.push_back(row.name);
    }
    return names;
  };
  EXPECT_THAT(can(together), ElementsAre("shm", "gloo"));
  EXPECT_THAT(can(apart), ElementsAre("gloo"));
  EXPECT_THAT(can(mixed), ElementsAre("shm+gloo", "gloo"));
  EXPECT_THAT(engine_names(false), ElementsAre("auto", "shm", "shm+gloo", "gloo"));
  EXPECT_THAT(engine_names(true), ElementsAre("auto", "inproc"));
  for (const EngineRow& row : engine_table()) EXPECT_EQ(row.make == nullptr, row.threads);
}

TEST(EngineTable, WhoCannotWorkHereSaysWhyAndWhatCould) {
  cluster::MemoryStore store;
  try {
    make_engine({.name = "shm+gloo", .rank = 0, .world = 1, .address = "127.0.0.1"}, store, soon());
    ADD_FAILURE() << "made";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_THAT(error.what(), HasSubstr("all workers are on one; use shm"));
  }
}

TEST(Mesh, NamesEveryRanksPlace) {
  const Mesh mesh{.data = 2, .pipeline = 3, .tensor = 4};
  EXPECT_EQ(mesh.world(), 24);
  std::vector<std::vector<int>> seen;
  for (int rank = 0; rank < mesh.world(); ++rank) {
    EXPECT_EQ(mesh.rank_at(mesh.place_of(rank)), rank);
    for (const Axis axis : {Axis::data, Axis::pipeline, Axis::tensor}) {
      const auto line = mesh.line(rank, axis);
      EXPECT_EQ(static_cast<int>(line.size()), mesh.size(axis));
      EXPECT_EQ(std::ranges::count(line, rank), 1);
      for (const int other : line) EXPECT_EQ(mesh.line(other, axis), line);
    }
  }
  EXPECT_THAT(mesh.line(17, Axis::tensor), ElementsAre(16, 17, 18, 19));
  EXPECT_THAT(mesh.line(17, Axis::pipeline), ElementsAre(13, 17, 21));
  EXPECT_THAT(mesh.line(17, Axis::data), ElementsAre(5, 17));
}

TEST(Mesh, RefusesSidesThatAreNotTheWorld) {
  EXPECT_NO_THROW((Mesh{.data = 2, .pipeline = 3, .tensor = 4}.check(24)));
  EXPECT_THROW((Mesh{.data = 2, .pipeline = 3, .tensor = 4}.check(25)), Error);
  EXPECT_THROW((Mesh{.data = -2, .pipeline = -3, .tensor = 4}.check(24)), Error);
  EXPECT_THROW((Mesh{.data = 0}.check(0)), Error);
}

}  // namespace
}  // namespace cohort::transport
