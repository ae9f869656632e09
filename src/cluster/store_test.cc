// Proves of every store, in memory or behind a socket, that keys are set, waited for, counted and
// decided alike, and that memory is handed over once to whoever takes it.

#include "cluster/store.h"

#include <gmock/gmock.h>

#include <limits>
#include <thread>

#include "cluster/cluster_test_support.h"
#include "cluster/socket_store.h"

namespace cohort::cluster {
namespace {

using ::testing::HasSubstr;

/// What every store does: the same tests over the memory and over a socket.
class StoreTest : public ::testing::TestWithParam<bool> {
 protected:
  StoreTest() : server_(Pass::draw()) { server_.start(); }

  /// Another client of the same store.
  Store& client() {
    if (!GetParam()) return memory_;
    clients_.push_back(
        std::make_unique<SocketStore>(server_.endpoint(), server_.pass(), soon(), Member{}));
    return *clients_.back();
  }

 private:
  MemoryStore memory_;
  StoreServer server_;
  std::vector<std::unique_ptr<SocketStore>> clients_;
};

TEST_P(StoreTest, AKeyIsWrittenOnce) {
  Store& store = client();
  store.set("key", std::string(100'000, '\0'));
  store.set("empty", "");
  store.set("key", std::string(100'000, '\0'));
  const Error error = error_of([&] { client().set("key", "another's word"); });
  EXPECT_EQ(error.code(), ErrorCode::invalid);
  EXPECT_EQ(client().get("key", soon()), std::string(100'000, '\0'));
  EXPECT_EQ(store.get("empty", soon()), "");
}

TEST_P(StoreTest, HasRoomForSoMuchAndNoMore) {
  Store& store = client();
  const std::string large(kMaxStoreValue, 'x');
  EXPECT_THROW(
      {
        for (std::size_t i = 0; i <= kMaxStoreBytes / large.size(); ++i) {
          store.set(std::to_string(i), large);
        }
      },
      Error);
  EXPECT_EQ(client().get("0", soon()), large) << "what was there stays";
}

TEST(MemoryStore, AKeyCountsForMoreThanItsText) {
  MemoryStore store;
  std::size_t left = kMaxStoreBytes;
  for (int i = 10; left > 2 * kMaxStoreValue; ++i) {
    store.set(std::to_string(i), std::string(kMaxStoreValue, 'x'));
    left -= kMaxStoreValue + 2 + kStoreKeyCost;
  }
  constexpr std::size_t kFew = 10;
  store.set("last", std::string(left - 4 - kStoreKeyCost - kFew * (kStoreKeyCost + 1), 'x'));
  for (std::size_t i = 0; i < kFew; ++i) store.set(std::string(1, static_cast<char>('a' + i)), "");
  EXPECT_THROW(store.set("z", ""), Error);
  EXPECT_EQ(store.set_once("a", ""), "") << "what is there costs nothing again";
}

TEST_P(StoreTest, HandsMemoryToWhoTakesIt) {
  os::SharedMemory memory = os::SharedMemory::create(5000);
  Store& giver = client();
  std::byte seen{};
  std::jthread early([&, &taker = client()] {
    os::SharedMemory taken = taker.take("memory", os::SharedMemory::Pages::reserved, soon());
    EXPECT_EQ(taken.size(), 5000u);
    taken.data()[1] = std::byte{5};
    seen = taken.data()[4999];
  });
  memory.data()[4999] = std::byte{7};
  giver.give("memory", memory, 2);
  early.join();
  EXPECT_EQ(seen, std::byte{7});
  EXPECT_EQ(memory.data()[1], std::byte{5}) << "it is the same memory";
  EXPECT_THROW(client().give("memory", memory, 1), Error) << "before it is taken, nobody else's";
  client().take("memory", os::SharedMemory::Pages::on_use, soon());
  const Error gone = error_of([&] {
    client().take("memory", os::SharedMemory::Pages::reserved, Deadline::in_seconds(0.02));
  });
  EXPECT_EQ(gone.code(), ErrorCode::timeout) << "both takers have it";
}

TEST_P(StoreTest, GetWaitsForASetter) {
  Store& waiting = client();
  Store& setting = client();
  std::string value;
  std::jthread reader([&] { value = waiting.get("late", soon()); });
  setting.set("other", "not this one");
  setting.set("late", "now");
  reader.join();
  EXPECT_EQ(value, "now");
}

TEST_P(StoreTest, GetGivesUpAtItsDeadlineAndTheStoreStaysUsable) {
  Store& store = client();
  const Error error = error_of([&] { store.get("never", Deadline::in_seconds(0.02)); });
  EXPECT_EQ(error.code(), ErrorCode::timeout);
  EXPECT_THAT(error.what(), HasSubstr("\"never\""));
  client().set("never", "too late");
  store.set("key", "value");
  EXPECT_EQ(store.get("key", soon()), "value");
}

TEST_P(StoreTest, AddsFromManyClients) {
  constexpr int kClients = 4;
  constexpr int kTimes = 50;
  std::vector<Store*> stores;
  for (int i = 0; i < kClients; ++i) stores.push_back(&client());
  {
    std::vector<std::jthread> adders;
    for (Store* store : stores) {
      adders.emplace_back([store] {
        for (int i = 0; i < kTimes; ++i) store->add("count", 2);
      });
    }
  }
  EXPECT_EQ(client().add("count", -1), 2 * kClients * kTimes - 1);
  EXPECT_EQ(client().get("count", soon()), std::to_string(2 * kClients * kTimes - 1));
}

TEST_P(StoreTest, SetsOnceForAll) {
  constexpr int kClients = 4;
  std::vector<Store*> stores;
  for (int i = 0; i < kClients; ++i) stores.push_back(&client());
  std::vector<std::string> answers(kClients);
  {
    std::vector<std::jthread> setters;
    for (int i = 0; i < kClients; ++i) {
      setters.emplace_back([&, i] {
        const auto index = static_cast<std::size_t>(i);
        answers[index] = stores[index]->set_once("mine", std::to_string(i));
      });
    }
  }
  for (const std::string& answer : answers) EXPECT_EQ(answer, answers.front());
  EXPECT_EQ(client().get("mine", soon()), answers.front());
  EXPECT_EQ(client().set_once("mine", "late"), answers.front());
  client().set("told", "before");
  EXPECT_EQ(client().set_once("told", "after"), "before");
  Store& store = client();
  PrefixStore part(store, "part/");
  EXPECT_EQ(part.set_once("mine", "another"), "another");
}

TEST_P(StoreTest, RefusesToAddToText) {
  Store& store = client();
  store.set("name", "rank zero");
  const Error error = error_of([&] { store.add("name", 1); });
  EXPECT_EQ(error.code(), ErrorCode::invalid);
  EXPECT_THAT(error.what(), HasSubstr("\"name\""));
}

TEST_P(StoreTest, RefusesSumsThatOverflowAndQuotesLittle) {
  Store& store = client();
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(store.add("count", kMost), kMost);
  const Error too_far = error_of([&] { store.add("count", 1); });
  EXPECT_THAT(too_far.what(), HasSubstr("cannot count that far"));
  EXPECT_EQ(store.add("count", -kMost), 0);
  store.set("text", std::string(100'000, '1'));
  const Error no_counter = error_of([&] { store.add("text", 1); });
  EXPECT_LT(std::string(no_counter.what()).size(), 300u);
}

INSTANTIATE_TEST_SUITE_P(Stores, StoreTest, ::testing::Values(false, true),
                         [](const auto& test) { return test.param ? "Socket" : "Memory"; });

}  // namespace
}  // namespace cohort::cluster
