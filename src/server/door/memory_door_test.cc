// What a worker's request refers to stays until it is answered, whatever the worker does meanwhile.

#include "server/door/server_doors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>

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

  /// With numbers of memory that nobody gave.
  void greet_with_nothing() {
    door_.greet(worker_, {.pid = ::getpid(),
                          .floats_number = next_memory_number(),
                          .floats = kDense,
                          .side_number = next_memory_number()});
  }

  /// With memory of these bytes, of which it says what it likes; its numbers are filled in.
  void greet_as(Hello hello, std::size_t float_bytes, std::size_t side_bytes) {
    hello.pid = ::getpid();
    hello.floats_number = give(os::SharedMemory::create(float_bytes));
    hello.side_number = give(os::SharedMemory::create(side_bytes));
    door_.greet(worker_, hello);
  }

  /// A request that is `message`, and says that it has so many bytes.
  void ask(std::span<const std::byte> message, std::uint64_t bytes) {
    std::memcpy(side_.data(), message.data(), message.size());
    slot_.request_bytes = bytes;
    slot_.posted.fetch_add(1, std::memory_order_release);
    door_.take_all();
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
    ask(message, message.size());
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

/// Remembers whether anybody wanted to wait for memory that others give.
class WatchedStore : public cluster::MemoryStore {
 public:
  os::SharedMemory take(const std::string& key, os::SharedMemory::Pages pages,
                        Deadline deadline) override {
    would_wait = would_wait || !deadline.passed();
    return MemoryStore::take(key, pages, deadline);
  }

  bool would_wait = false;
};

/// A server whose update takes the pushes of two workers: two dense floats, a table of four rows.
struct Quorum {
  explicit Quorum(std::uint32_t width = 1) : desk(options()), door(2, 0, desk, store) {
    const std::vector<float> zeros(kDense + 4 * width);
    ModelMessage model;
    model.shape = {.dense = kDense,
                   .tables = {{.first_row = 0, .end_row = 4, .width = width}},
                   .matrices = {}};
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

  WatchedStore store;
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

// Others want to be served meanwhile.
TEST(MemoryDoor, NobodyWaitsForMemoryThatWasNeverGiven) {
  Quorum server;
  Neighbour first(0, server.door, server.store), second(1, server.door, server.store);
  second.push(2, {1, 3}, {10, 20});
  EXPECT_THROW(second.greet_with_nothing(), Error);
  EXPECT_THROW(server.door.take_memory(1, next_memory_number()), Error);
  EXPECT_FALSE(server.store.would_wait);
  first.push(1, {0, 3}, {1, 2});
  EXPECT_THAT(server.floats(), ElementsAre(-3, -3, -1, -10, 0, -22));
}

// Sizes are the worker's words, and memory is as large as it is.
TEST(MemoryDoor, GreetingsThatLieAboutTheirMemoryAreRefused) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  constexpr std::size_t kFloatBytes = 2 * whole_lines(kDense) * sizeof(float);
  Quorum server;
  Neighbour first(0, server.door, server.store), second(1, server.door, server.store);
  for (const std::uint64_t floats : {std::uint64_t{17}, kMost, kMost / 4, kMost / 8 + 1}) {
    EXPECT_THROW(second.greet_as({.floats = floats}, kFloatBytes, kSideBytes), Error) << floats;
  }
  EXPECT_THROW(second.greet_as({.floats = kDense, .part_begin = 3}, kFloatBytes, kSideBytes),
               Error);
  EXPECT_THROW(second.greet_as({.floats = kDense, .part_begin = kMost}, kFloatBytes, kSideBytes),
               Error);
  EXPECT_THROW(second.greet_as({.floats = kDense}, kFloatBytes, 64), Error);
  second.push(2, {1, 3}, {10, 20});
  first.push(1, {0, 3}, {1, 2});
  EXPECT_THAT(server.floats(), ElementsAre(-3, -3, -1, -10, 0, -22)) << "its memory is as it was";
}

TEST(MemoryDoor, RequestsThatLieAboutTheirSizesAreRefusedAndTheServerGoesOn) {
  Quorum server;
  Neighbour first(0, server.door, server.store), second(1, server.door, server.store);
  const auto refused = [&](const Request& request, std::uint64_t more_bytes) {
    std::vector<std::byte> message;
    write_request(message, request);
    second.ask(message, message.size() + more_bytes);
    EXPECT_TRUE(second.is_answered());
    try {
      second.read_answer();
      return false;
    } catch (const Error& error) {
      return error.code() == ErrorCode::corrupt || error.code() == ErrorCode::invalid;
    }
  };
  Request request;
  request.header.worker = 1;
  EXPECT_TRUE(refused(request, kSideBytes));
  EXPECT_TRUE(refused(request, std::numeric_limits<std::uint64_t>::max() / 2));
  const std::vector<std::uint32_t> rows(1000, 1);
  std::vector<float> values(rows.size() << 10);  // A message has their width, and not them.
  request.rows_wanted = {{.table = 0, .rows = rows, .values = values}};
  EXPECT_TRUE(refused(request, 0)) << "more rows than its memory can take";
  request.rows_wanted = {{.table = 7, .rows = rows, .values = std::span(values).first(1000)}};
  EXPECT_TRUE(refused(request, 0)) << "of a table that there is not";
  request.rows_wanted.clear();
  request.kind = RequestKind::leave;
  request.header.worker = 0;
  EXPECT_TRUE(refused(request, 0)) << "for another";

  second.push(2, {1, 3}, {10, 20});
  first.push(1, {0, 3}, {1, 2});
  EXPECT_THAT(server.floats(), ElementsAre(-3, -3, -1, -10, 0, -22));
}

// The numbers of rows fit where a request stands, and the rows would not where its answer does.
TEST(MemoryDoor, MoreRowsThanItsMemoryTakesAreRefused) {
  constexpr std::uint32_t kWidth = 64;
  Quorum server(kWidth);
  Neighbour worker(1, server.door, server.store);
  const auto ask = [&](std::size_t count) {
    const std::vector<std::uint32_t> rows(count, 1);
    std::vector<float> values(count * kWidth);  // A message has their width, and not them.
    Request request;
    request.header.worker = 1;
    request.rows_wanted = {{.table = 0, .rows = rows, .values = values}};
    std::vector<std::byte> message;
    write_request(message, request);
    worker.ask(message, message.size());
    worker.read_answer();
  };
  EXPECT_NO_THROW(ask(100));
  EXPECT_THROW(ask(kSideBytes / 2 / sizeof(float) / kWidth), Error);
  EXPECT_THROW(ask(5000), Error);
  EXPECT_NO_THROW(ask(1));
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
