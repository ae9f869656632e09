// Proves of every store that keys are set, waited for, counted and decided alike; of the wire that
// messages come whole or are refused; and of server and client what happens when one is late, gone
// or a stranger.

#include "cluster/store.h"

#include <cohort/error.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <limits>
#include <thread>

#include "cluster/socket_store.h"
#include "os/endpoint.h"
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

/// A connection that has proved itself and then sends bytes of its own.
UniqueFd proven_socket(const StoreServer& server) {
  UniqueFd socket = os::connect_at(server.endpoint(), soon());
  prove(socket, Connecting(server.pass().secret, Purpose::store, {}), "the store", soon());
  return socket;
}

void send_bytes(const UniqueFd& socket, const std::string& bytes) {
  ASSERT_EQ(::write(socket.get(), bytes.data(), bytes.size()), std::ssize(bytes));
}

bool is_closed(const UniqueFd& socket) {
  char byte = 0;
  return os::wait_for_socket(socket, POLLIN, soon()) && ::read(socket.get(), &byte, 1) <= 0;
}

std::size_t peak_memory() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::size_t>(usage.ru_maxrss) << 10;
}

// One read of the server brings hundreds of requests, each with an answer of a megabyte.
TEST(StoreServer, WhoAsksOnAndOnWithoutReadingIsDroppedBeforeItTakesMemory) {
  StoreServer server(Pass::draw());
  server.start();
  SocketStore(server.endpoint(), server.pass(), soon(), {})
      .set("k", std::string(kMaxStoreValue, 'x'));
  const UniqueFd socket = proven_socket(server);
  std::string requests;
  for (std::uint64_t id = 1; id <= 600; ++id) {
    requests += encode_store_message({Kind::get, id, "k", ""});
  }
  ASSERT_LT(requests.size(), 16u << 10) << "one read";
  const std::size_t before = peak_memory();
  send_bytes(socket, requests);
  char part[4096];
  while (os::wait_for_socket(socket, POLLIN, soon()) &&
         ::read(socket.get(), part, sizeof(part)) > 0) {
  }
  EXPECT_LT(peak_memory(), before + (std::size_t{64} << 20));
  SocketStore(server.endpoint(), server.pass(), soon(), {}).set("key", "still served");
}

TEST(StoreServer, RefusesAnAmountThatIsNoNumber) {
  StoreServer server(Pass::draw());
  server.start();
  const UniqueFd socket = proven_socket(server);
  for (const std::string amount : {"12abc", "", "9223372036854775808", "x"}) {
    send_bytes(socket, encode_store_message({Kind::add, 1, "count", amount}));
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
                         [](const auto& test) { return test.param ? "Socket" : "Memory"; });

TEST(SocketStore, WaitsForAServerThatStartsLater) {
  const Pass pass = Pass::draw();
  const std::string endpoint = pass.endpoint_of("unix:later");
  std::string value;
  std::jthread early([&] { value = SocketStore(endpoint, pass, soon(), {}).get("key", soon()); });
  StoreServer server(endpoint, pass);
  server.start();
  SocketStore(endpoint, pass, soon(), {}).set("key", "value");
  early.join();
  EXPECT_EQ(value, "value");
}

TEST(SocketStore, SaysWhereNobodyAnswered) {
  const Pass pass = Pass::draw();
  std::string endpoint;
  { endpoint = StoreServer(kLoopback + ":0", pass).endpoint(); }  // Nobody listens there now.
  for (const std::string& nowhere : {endpoint, pass.endpoint_of("unix:nowhere")}) {
    const Error error =
        error_of([&] { SocketStore(nowhere, pass, Deadline::in_seconds(0.05), {}); });
    EXPECT_EQ(error.code(), ErrorCode::timeout);
    EXPECT_THAT(error.what(), HasSubstr(nowhere));
  }
}

TEST(SocketStore, NamesTheHostThatCannotBeResolved) {
  const Error error = error_of(
      [&] { SocketStore("no-such-host.invalid:1", Pass::draw(), Deadline::in_seconds(0.05), {}); });
  EXPECT_THAT(error.what(), HasSubstr("no-such-host.invalid"));
}

TEST(SocketStore, NamesTheServerItLost) {
  for (const std::string where : {"unix", "tcp"}) {
    const Pass pass = Pass::draw();
    auto server = where == "unix" ? std::make_unique<StoreServer>(pass)
                                  : std::make_unique<StoreServer>(kLoopback + ":0", pass);
    const std::string endpoint = server->endpoint();
    server->start();
    SocketStore store(endpoint, pass, soon(), {});
    store.set("key", "value");
    server.reset();
    for (int call = 0; call < 2; ++call) {
      const Error error = error_of([&] { store.get("key", soon()); });
      EXPECT_EQ(error.code(), ErrorCode::peer_lost);
      EXPECT_THAT(error.what(), HasSubstr(endpoint));
    }
  }
}

TEST(SocketStore, TellsItsAddressOnTheConnection) {
  const Pass pass = Pass::draw();
  StoreServer remote(kLoopback + ":0", pass);
  remote.start();
  EXPECT_EQ(SocketStore(remote.endpoint(), pass, soon(), {}).local_address(), kLoopback);
  StoreServer here(pass);
  here.start();
  EXPECT_EQ(SocketStore(here.endpoint(), pass, soon(), {}).local_address(), "");
}

TEST(SocketStore, MemoryIsNotHandedToAnotherHost) {
  StoreServer server(kLoopback + ":0", Pass::draw());
  server.start();
  SocketStore store(server.endpoint(), server.pass(), soon(), {});
  const Error error = error_of([&] { store.give("memory", os::SharedMemory::create(4096), 1); });
  EXPECT_EQ(error.code(), ErrorCode::unsupported);
  MemoryStore host;
  HostStore joined(store, host);
  joined.give("memory", os::SharedMemory::create(4096), 1);
  EXPECT_EQ(joined.take("memory", os::SharedMemory::Pages::reserved, soon()).size(), 4096u);
}

TEST(StoreServer, DropsAMemberThatSpeaksAnotherProtocol) {
  StoreServer server(Pass::draw());
  server.start();
  const UniqueFd member = proven_socket(server);
  send_bytes(member, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_TRUE(is_closed(member));
  SocketStore(server.endpoint(), server.pass(), soon(), {}).set("key", "still served");
}

// So that no member can fill the launcher's memory with answers, or its table of descriptors.
TEST(StoreServer, DropsAMemberThatAsksAndAsksWithoutReading) {
  StoreServer server(Pass::draw());
  server.start();
  SocketStore other(server.endpoint(), server.pass(), soon(), {});
  other.set("large", std::string(kMaxStoreValue, 'x'));
  const UniqueFd member = proven_socket(server);
  const std::string question = encode_store_message({Kind::get, 1, "large", ""});
  const Deadline deadline = soon();
  bool dropped = false;
  while (!dropped && !deadline.passed()) {
    const auto sent = ::send(member.get(), question.data(), question.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EAGAIN) os::wait_for_socket(member, POLLOUT, deadline);
    dropped = sent < 0 && errno != EAGAIN;
  }
  EXPECT_TRUE(dropped);
  EXPECT_EQ(other.get("large", soon()).size(), kMaxStoreValue) << "all others are still served";
}

TEST(StoreServer, DropsAMemberWhoseDescriptorsBelongToNothing) {
  StoreServer server(Pass::draw());
  server.start();
  const UniqueFd member = proven_socket(server);
  const std::string half = encode_store_message({Kind::set, 1, "key", std::string(1000, 'x')});
  for (const char byte : half.substr(0, 40)) {
    if (os::send_with(member, std::string(1, byte), STDERR_FILENO) < 0) break;
  }
  EXPECT_TRUE(is_closed(member));
  SocketStore(server.endpoint(), server.pass(), soon(), {}).set("key", "still served");
}

TEST(StoreServer, AMemberThatGivesAndGivesHasRoomForSoMuch) {
  constexpr int kGiven = 300;
  StoreServer server(Pass::draw());
  server.start();
  const os::SharedMemory memory = os::SharedMemory::create(4096);
  SocketStore giver(server.endpoint(), server.pass(), soon(), {});
  SocketStore taker(server.endpoint(), server.pass(), soon(), {});
  const auto descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  };
  const auto before = descriptors();
  for (int number = 0; number < kGiven; ++number) {
    giver.give("piece/" + std::to_string(number), memory, 1);
  }
  EXPECT_LT(descriptors() - before, kGiven / 2);
  const std::string newest = "piece/" + std::to_string(kGiven - 1);
  EXPECT_EQ(taker.take(newest, os::SharedMemory::Pages::reserved, soon()).size(), 4096U);
}

/// Memory that was given by who is gone would stay for as long as the run.
TEST(StoreServer, LetsGoOfMemoryWithItsGiver) {
  StoreServer server(Pass::draw());
  server.start();
  const os::SharedMemory memory = os::SharedMemory::create(4096);
  auto giver = std::make_unique<SocketStore>(server.endpoint(), server.pass(), soon(), Member{});
  SocketStore taker(server.endpoint(), server.pass(), soon(), {});
  giver->give("kept", memory, kAnyTakers);
  taker.take("kept", os::SharedMemory::Pages::reserved, soon());
  giver.reset();
  const auto look = [&] {
    taker.take("kept", os::SharedMemory::Pages::reserved, Deadline::in_seconds(0.01));
  };
  const Deadline deadline = soon();
  ErrorCode code = ErrorCode::cancelled;
  while (code != ErrorCode::timeout && !deadline.passed()) {
    try {
      look();
    } catch (const Error& error) {
      code = error.code();
    }
  }
  EXPECT_EQ(code, ErrorCode::timeout);
}

/// A group's store asks in slices of time, and memory is handed over once.
TEST(StoreServer, MemoryThatComesAfterItsTakerGaveUpIsThereForItsNextTry) {
  StoreServer server(Pass::draw());
  server.start();
  const os::SharedMemory memory = os::SharedMemory::create(4096);
  SocketStore giver(server.endpoint(), server.pass(), soon(), {});
  SocketStore taker(server.endpoint(), server.pass(), soon(), {});
  const auto comes_at_once = [&](const std::string& key) {
    try {
      taker.take(key, os::SharedMemory::Pages::reserved, Deadline::in_seconds(0));
      return true;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::timeout);
      return false;
    }
  };
  const auto take = [&](const std::string& key) {
    return taker.take(key, os::SharedMemory::Pages::reserved, soon()).size();
  };
  for (int round = 0; round < 20; ++round) {
    const std::string before = "before/" + std::to_string(round);
    EXPECT_FALSE(comes_at_once(before));  // The server knows of it, or will.
    giver.give(before, memory, 1);
    EXPECT_EQ(take(before), 4096U);

    const std::string between = "between/" + std::to_string(round);
    EXPECT_FALSE(comes_at_once(between));
    giver.give(between, memory, 1);
    taker.set("other/" + std::to_string(round), "");  // Its answer comes after the memory.
    EXPECT_EQ(take(between), 4096U);

    const std::string two = "two/" + std::to_string(round);
    giver.give(two, memory, 2);
    EXPECT_TRUE(comes_at_once(two) || comes_at_once(two) || take(two) == 4096U);
    EXPECT_EQ(giver.take(two, os::SharedMemory::Pages::reserved, soon()).size(), 4096U)
        << "who asked again has taken it once";
  }
}

TEST(StoreServer, RefusesATakenPort) {
  const Pass pass = Pass::draw();
  StoreServer server(kLoopback + ":0", pass);
  const Error error = error_of([&] { StoreServer(server.endpoint(), pass); });
  EXPECT_EQ(error.code(), ErrorCode::io);
  EXPECT_THAT(error.what(), HasSubstr(server.endpoint()));
}

// Also where the key is of memory; the descriptor that came with what was refused is not taken for
// the next.
TEST(StoreServer, AKeyWithAMarkIsWrittenByWhomItNames) {
  StoreServer server(Pass::draw());
  server.start();
  const auto connect = [&](const Member& self) {
    return SocketStore(server.endpoint(), server.pass(), soon(), self);
  };
  SocketStore one = connect({.role = Member::Role::worker, .number = 1});
  SocketStore other = connect({.role = Member::Role::worker, .number = 11});
  SocketStore of_server = connect({.role = Member::Role::server, .number = 1});
  const std::string key = "address" + one.mark_of_rank(1);
  const auto memory = os::SharedMemory::create(4096);
  for (SocketStore* stranger : {&other, &of_server}) {
    const auto refused = [&](auto&& write) {
      const Error error = error_of(write);
      EXPECT_EQ(error.code(), ErrorCode::invalid);
      EXPECT_THAT(error.what(), HasSubstr("may not write \"address@worker-1\""));
    };
    refused([&] { stranger->set(key, "elsewhere"); });
    refused([&] { stranger->set_once(key, "elsewhere"); });
    refused([&] { stranger->add(key, 1); });
    refused([&] { stranger->give(key, memory, 1); });
  }
  auto others = os::SharedMemory::create(4096);
  others.data()[0] = std::byte{7};
  other.give("mine" + one.mark_of_rank(11), others, 1);
  EXPECT_EQ(one.take("mine@worker-11", os::SharedMemory::Pages::on_use, soon()).data()[0],
            std::byte{7});
  one.set(key, "here");
  EXPECT_EQ(other.get(key, soon()), "here");
}

TEST(PrefixStoreTest, EachPartHasASecretOfItsOwn) {
  MemoryStore all;
  PrefixStore one(all, "group/1/");
  PrefixStore same(all, "group/1/");
  PrefixStore next(all, "group/2/");
  PrefixStore whole(all, "");
  const auto mac_of = [](Store& store) { return store.pass().secret.mac({}); };
  EXPECT_EQ(one.pass().folder, all.pass().folder);
  EXPECT_EQ(mac_of(one), mac_of(same));
  EXPECT_NE(mac_of(one), mac_of(all));
  EXPECT_NE(mac_of(one), mac_of(next));
  EXPECT_EQ(mac_of(whole), mac_of(all));
}

// A rank of a group is another worker of the run, also in a group of that group.
TEST(PrefixStoreTest, MarksAreOfTheWorkerAndNotOfItsRank) {
  MemoryStore all;
  PrefixStore group(all, "group/2/", nullptr, {4, 0, 7});
  PrefixStore part(group, "part/", nullptr, {2, 1});
  PrefixStore same(part, "same/");
  EXPECT_EQ(group.mark_of_rank(0), "@worker-4");
  EXPECT_EQ(part.mark_of_rank(0), "@worker-7");
  EXPECT_EQ(same.mark_of_rank(1), "@worker-0");
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
