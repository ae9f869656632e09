// Proves of every store that keys are set, waited for, counted and decided alike; of the wire that
// messages come whole or are refused; and of server and client what happens when one is late, gone
// or a stranger.

#include "cluster/store.h"

#include <cohort/error.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <limits>
#include <thread>

#include "cluster/tcp_store.h"
#include "os/tcp_socket.h"

namespace cohort::cluster {
namespace {

using ::testing::HasSubstr;
using Kind = StoreMessage::Kind;

const std::string kLoopback = "127.0.0.1";

Deadline soon() {
  return Deadline::in_seconds(60);
}

template <class Action>
Error error_of(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no Error was thrown";
  return Error(ErrorCode::cancelled, "");
}

TEST(StoreMessage, RoundTrips) {
  const std::vector<StoreMessage> messages = {
      {Kind::set, 1, "key", std::string("\0\xff binary", 9)},
      {Kind::get, 1ULL << 63, "", ""},
      {Kind::refused, 3, std::string(kMaxStoreKey, 'k'), std::string(kMaxStoreValue, 'v')}};
  std::string wire;
  for (const auto& message : messages) wire += encode_store_message(message);
  for (const auto& message : messages) EXPECT_EQ(decode_store_message(wire), message);
  EXPECT_TRUE(wire.empty());
}

TEST(StoreMessage, WaitsForTheWholeMessage) {
  const StoreMessage message{Kind::set, 7, "key", "value"};
  const std::string wire = encode_store_message(message);
  for (std::size_t size = 0; size < wire.size(); ++size) {
    std::string part = wire.substr(0, size);
    EXPECT_EQ(decode_store_message(part), std::nullopt) << size;
    EXPECT_EQ(part.size(), size);
  }
}

TEST(StoreMessage, RefusesWhatIsNoMessage) {
  std::string wire(64, 'x');
  EXPECT_EQ(error_of([&] { decode_store_message(wire); }).code(), ErrorCode::corrupt);
  std::string too_large = encode_store_message({Kind::set, 7, "key", "value"});
  too_large[19] = '\x7f';  // The highest byte of the size of the key.
  EXPECT_EQ(error_of([&] { decode_store_message(too_large); }).code(), ErrorCode::corrupt);
  const StoreMessage long_key{Kind::get, 1, std::string(kMaxStoreKey + 1, 'k'), ""};
  EXPECT_EQ(error_of([&] { encode_store_message(long_key); }).code(), ErrorCode::invalid);
}

/// What every store does: the same tests over the memory and over a socket.
class StoreTest : public ::testing::TestWithParam<bool> {
 protected:
  StoreTest() : server_(kLoopback, 0) { server_.start(); }

  /// Another client of the same store.
  Store& client() {
    if (!GetParam()) return memory_;
    clients_.push_back(std::make_unique<TcpStore>(kLoopback, server_.port(), soon()));
    return *clients_.back();
  }

 private:
  MemoryStore memory_;
  StoreServer server_;
  std::vector<std::unique_ptr<TcpStore>> clients_;
};

TEST_P(StoreTest, KeepsWhatWasSetLast) {
  Store& store = client();
  store.set("key", "first");
  store.set("key", std::string(100'000, '\0'));
  store.set("empty", "");
  EXPECT_EQ(client().get("key", soon()), std::string(100'000, '\0'));
  EXPECT_EQ(store.get("empty", soon()), "");
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
  store.set("count", std::string(100'000, '1'));
  const Error no_counter = error_of([&] { store.add("count", 1); });
  EXPECT_LT(std::string(no_counter.what()).size(), 300u);
}

TEST(StoreServer, RefusesAnAmountThatIsNoNumber) {
  StoreServer server(kLoopback, 0);
  server.start();
  const UniqueFd socket = os::connect_to(kLoopback, server.port(), soon());
  for (const std::string amount : {"12abc", "", "9223372036854775808", "x"}) {
    const std::string wire = encode_store_message({Kind::add, 1, "count", amount});
    ASSERT_EQ(::write(socket.get(), wire.data(), wire.size()), std::ssize(wire));
    std::string answer;
    std::optional<StoreMessage> message;
    while (!(message = decode_store_message(answer))) {
      char buffer[256];
      ASSERT_TRUE(os::wait_for_socket(socket, POLLIN, soon()));
      const auto got = ::read(socket.get(), buffer, sizeof buffer);
      ASSERT_GT(got, 0);
      answer.append(buffer, static_cast<std::size_t>(got));
    }
    EXPECT_EQ(message->kind, Kind::refused) << amount;
  }
}

INSTANTIATE_TEST_SUITE_P(Stores, StoreTest, ::testing::Values(false, true),
                         [](const auto& test) { return test.param ? "Tcp" : "Memory"; });

TEST(TcpStore, WaitsForAServerThatStartsLater) {
  std::uint16_t port = 0;
  { port = StoreServer(kLoopback, 0).port(); }  // Nobody listens there now.
  std::string value;
  std::jthread early([&] {
    TcpStore store("localhost", port, soon());
    value = store.get("key", soon());
  });
  StoreServer server(kLoopback, port);
  server.start();
  TcpStore(kLoopback, port, soon()).set("key", "value");
  early.join();
  EXPECT_EQ(value, "value");
}

TEST(TcpStore, SaysWhereNobodyAnswered) {
  std::uint16_t port = 0;
  { port = StoreServer(kLoopback, 0).port(); }
  const Error error = error_of([&] { TcpStore(kLoopback, port, Deadline::in_seconds(0.05)); });
  EXPECT_EQ(error.code(), ErrorCode::timeout);
  EXPECT_THAT(error.what(), HasSubstr(os::host_and_port(kLoopback, port)));
}

TEST(TcpStore, NamesTheHostThatCannotBeResolved) {
  const Error error =
      error_of([&] { TcpStore("no-such-host.invalid", 1, Deadline::in_seconds(0.05)); });
  EXPECT_THAT(error.what(), HasSubstr("no-such-host.invalid"));
}

TEST(TcpStore, NamesTheServerItLost) {
  auto server = std::make_unique<StoreServer>(kLoopback, 0);
  const std::uint16_t port = server->port();
  server->start();
  TcpStore store(kLoopback, port, soon());
  store.set("key", "value");
  server.reset();
  for (int call = 0; call < 2; ++call) {
    const Error error = error_of([&] { store.get("key", soon()); });
    EXPECT_EQ(error.code(), ErrorCode::peer_lost);
    EXPECT_THAT(error.what(), HasSubstr(os::host_and_port(kLoopback, port)));
  }
}

TEST(TcpStore, TellsItsAddressOnTheConnection) {
  StoreServer server(kLoopback, 0);
  server.start();
  EXPECT_EQ(TcpStore(kLoopback, server.port(), soon()).local_address(), kLoopback);
}

TEST(StoreServer, DropsAClientThatSpeaksAnotherProtocol) {
  StoreServer server(kLoopback, 0);
  server.start();
  const UniqueFd stranger = os::connect_to(kLoopback, server.port(), soon());
  const std::string request = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
  ASSERT_EQ(::write(stranger.get(), request.data(), request.size()),
            static_cast<ssize_t>(request.size()));
  ASSERT_TRUE(os::wait_for_socket(stranger, POLLIN, soon()));
  char byte = 0;
  EXPECT_LE(::read(stranger.get(), &byte, 1), 0);
  TcpStore(kLoopback, server.port(), soon()).set("key", "still served");
}

TEST(StoreServer, RefusesATakenPort) {
  StoreServer server(kLoopback, 0);
  const Error error = error_of([&] { StoreServer(kLoopback, server.port()); });
  EXPECT_EQ(error.code(), ErrorCode::io);
  EXPECT_THAT(error.what(), HasSubstr(os::host_and_port(kLoopback, server.port())));
}

TEST(PrefixStoreTest, KeepsGroupsApart) {
  MemoryStore all;
  PrefixStore first(all, "1/");
  PrefixStore second(all, "2/");
  first.set("key", "a");
  second.set("key", "b");
  EXPECT_EQ(first.get("key", Deadline::in(std::chrono::seconds(1))), "a");
  EXPECT_EQ(second.get("key", Deadline::in(std::chrono::seconds(1))), "b");
  EXPECT_EQ(second.add("count", 2), 2);
  EXPECT_EQ(first.add("count", 3), 3);
  EXPECT_EQ(all.find("1/key"), "a");
}

TEST(PrefixStoreTest, AnAbandonedWaitEndsBeforeItsDeadline) {
  MemoryStore all;
  PrefixStore group(all, "1/", [] { return true; });
  try {
    group.get("never", Deadline::in(std::chrono::hours(1)));
    FAIL() << "there is no such key";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::peer_lost);
  }
  PrefixStore patient(all, "1/", [] { return false; });
  EXPECT_THROW(patient.get("never", Deadline::in(std::chrono::milliseconds(60))), Error);
}

}  // namespace
}  // namespace cohort::cluster
