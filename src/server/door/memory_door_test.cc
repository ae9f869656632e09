// What a worker's request refers to stays until it is answered, whatever the worker does meanwhile.

#include "server/door/server_doors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

namespace cohort::server {
namespace {

using ::testing::ElementsAre;

constexpr std::size_t kDense = 2;
constexpr std::size_t kSideBytes = 1 << 16;

/// A worker of the server's host, without the client that it would use.
class Neighbour {
 public:
  Neighbour(int worker, MemoryDoor& door, cluster::Store& store)
      : worker_(worker),
        door_(door),
        store_(store),
        slot_(Door(door.memory()).slot(worker)),
        floats_(os::SharedMemory::create(2 * whole_lines(kDense) * sizeof(float) + sizeof(float))) {
    greet();
  }

  /// Also a second time, with other memory for its messages.
  void greet() {
    os::SharedMemory fresh = os::SharedMemory::create(kSideBytes);
    if (floats_number_ == 0) floats_number_ = give(floats_);
    door_.greet(worker_, {.pid = ::getpid(),
                          .floats_number = floats_number_,
                          .floats = kDense,
                          .side_number = give(fresh)});
    side_ = std::move(fresh);
  }

  /// With floats for less than the model it speaks of.
  void greet_with_too_little() {
    door_.greet(worker_, {.pid = ::getpid(),
                          .floats_number = give(os::SharedMemory::create(sizeof(float))),
                          .floats = kDense,
                          .side_number = give(os::SharedMemory::create(kSideBytes))});
  }

  /// `as` is the worker it says it is; -1: itself.
  void push(float dense, std::vector<std::uint32_t> rows, std::vector<float> values, int as = -1) {
    auto* floats = reinterpret_cast<float*>(floats_.data());
    floats[0] = floats[1] = dense;
    Request request;
    request.header.worker = as < 0 ? worker_ : as;
    request.header.push = true;
    request.header.lr = 1;
    request.header.sequence = ++sequence_;
    request.rows = {{.table = 0, .rows = rows, .values = values}};
    std::vector<std::byte> message;
    write_request(message, request);
    std::memcpy(side_.data(), message.data(), message.size());
    slot_.request_bytes = message.size();
    slot_.posted.fetch_add(1, std::memory_order_release);
    door_.take_all();
  }

  /// Throws what the server has refused.
  void read_answer() const {
    read_reply(std::span(side_.data(), side_.size()).subspan(side_.size() / 2, slot_.reply_bytes));
  }

  /// Writes other row numbers where those of its last push stand.
  void change_rows(const std::vector<std::uint32_t>& rows,
                   const std::vector<std::uint32_t>& others) {
    const auto bytes = std::as_bytes(std::span(rows));
    const auto found =
        std::search(side_.data(), side_.data() + side_.size() / 2, bytes.begin(), bytes.end());
    ASSERT_NE(found, side_.data() + side_.size() / 2);
    std::memcpy(found, others.data(), bytes.size());
  }

  /// Writes into the server's memory, which it shares, that its request was answered.
  void lie_that_it_is_answered() { slot_.answered.store(slot_.posted.load()); }

  bool is_answered() const { return slot_.answered.load() == slot_.posted.load(); }

 private:
  std::uint64_t give(const os::SharedMemory& memory) {
    const std::uint64_t number = next_memory_number();
    store_.give(memory_key(store_, worker_, 0, number), memory, 1);
    return number;
  }

  int worker_;
  MemoryDoor& door_;
  cluster::Store& store_;
  DoorSlot& slot_;
  os::SharedMemory floats_;
  std::uint64_t floats_number_ = 0;  // Once it is given.
  os::SharedMemory side_;
  std::uint64_t sequence_ = 0;
};

/// A server whose update takes the pushes of two workers: two dense floats, a table of four rows.
struct Quorum {
  Quorum() : desk(options()), door(2, 0, desk, store) {
    const std::vector<float> zeros(kDense + 4);
    ModelMessage model;
    model.shape = {
        .dense = kDense, .tables = {{.first_row = 0, .end_row = 4, .width = 1}}, .matrices = {}};
    model.floats = zeros;
    desk.initialise(model);
  }

  static ServerOptions options() {
    ServerOptions options;
    options.rules.workers = 2;
    options.rules.consistency = ShardRules::Consistency::quorum;
    options.rules.quorum = 2;
    options.rules.optimizer = {.kind = "sgd"};
    return options;
  }

  std::vector<float> floats() const {
    std::vector<float> all(desk.shard()->floats());
    desk.shard()->copy_to(all);
    return all;
  }

  cluster::MemoryStore store;
  ServerDesk desk;
  MemoryDoor door;
};

TEST(MemoryDoor, NobodySpeaksForAnother) {
  Quorum server;
  Neighbour first(0, server.door, server.store), second(1, server.door, server.store);
  second.push(1, {0}, {1}, 0);
  ASSERT_TRUE(second.is_answered());
  try {
    second.read_answer();
    ADD_FAILURE() << "worker 1 has pushed as worker 0";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("worker 1 speaks as worker 0"));
  }
  first.push(1, {0}, {1});
  EXPECT_FALSE(first.is_answered()) << "the round had a push of worker 0 already";
}

TEST(MemoryDoor, RowsOfAPushThatWaitsStayWhenItsWorkerGreetsAgain) {
  Quorum server;
  Neighbour first(0, server.door, server.store), second(1, server.door, server.store);
  second.push(2, {1, 3}, {10, 20});
  EXPECT_FALSE(second.is_answered());
  second.greet();
  first.push(1, {0, 3}, {1, 2});
  EXPECT_TRUE(first.is_answered() && second.is_answered());
  EXPECT_THAT(server.floats(), ElementsAre(-3, -3, -1, -10, 0, -22));
}

// What it changes later is not looked at again; out of the table it would be memory of the server.
TEST(MemoryDoor, RowNumbersStayAsTheyWereChecked) {
  Quorum server;
  Neighbour first(0, server.door, server.store), second(1, server.door, server.store);
  second.push(2, {1, 3}, {10, 20});
  second.change_rows({1, 3}, {0, 2});
  first.push(1, {0, 3}, {1, 2});
  EXPECT_TRUE(first.is_answered() && second.is_answered());
  EXPECT_THAT(server.floats(), ElementsAre(-3, -3, -1, -10, 0, -22));
}

TEST(MemoryDoor, WhatAPushRefersToStaysWhateverItsWorkerSays) {
  Quorum server;
  Neighbour first(0, server.door, server.store), second(1, server.door, server.store);
  second.push(2, {1, 3}, {10, 20});
  second.lie_that_it_is_answered();
  second.greet();
  first.push(1, {0, 3}, {1, 2});
  EXPECT_THAT(server.floats(), ElementsAre(-3, -3, -1, -10, 0, -22));
}

TEST(MemoryDoor, WhatAPushRefersToStaysWhenItsWorkerAsksForMore) {
  Quorum server;
  Neighbour first(0, server.door, server.store), second(1, server.door, server.store);
  second.push(2, {1, 3}, {10, 20});
  second.greet();
  second.push(2, {0, 1}, {5, 5});
  EXPECT_THROW(second.read_answer(), Error) << "the first is not answered yet";
  first.push(1, {0, 3}, {1, 2});
  EXPECT_THAT(server.floats(), ElementsAre(-3, -3, -1, -10, 0, -22));
}

TEST(MemoryDoor, AGreetingThatIsRefusedLeavesAllAsItWas) {
  Quorum server;
  Neighbour first(0, server.door, server.store), second(1, server.door, server.store);
  second.push(2, {1, 3}, {10, 20});
  EXPECT_THROW(second.greet_with_too_little(), Error);
  EXPECT_THROW(first.greet_with_too_little(), Error);
  first.push(1, {0, 3}, {1, 2});
  EXPECT_TRUE(first.is_answered() && second.is_answered());
  EXPECT_THAT(server.floats(), ElementsAre(-3, -3, -1, -10, 0, -22));
}

// As a worker does that has waited too long, and is then asked for by the next group.
TEST(MemoryDoor, APushThatWaitsCountsWithItsRowsWhenItsWorkerLeaves) {
  Quorum server;
  Neighbour first(0, server.door, server.store);
  {
    Neighbour second(1, server.door, server.store);
    second.push(2, {1, 3}, {10, 20});
    server.desk.leave(1, LeftWork::kept);
  }
  first.push(1, {0, 3}, {1, 2});
  std::vector<float> floats = server.floats();
  const float of_one = floats[2];  // How much one push of fewer workers counts is another's test.
  EXPECT_LT(of_one, 0);
  for (float& value : floats) value /= of_one;
  EXPECT_THAT(floats, ElementsAre(3, 3, 1, 10, 0, 22));
}

}  // namespace
}  // namespace cohort::server
