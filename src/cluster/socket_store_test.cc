// Proves of the store's wire that messages come whole or are refused; and of its server and client
// what happens when one is late, gone, a stranger, or writes what is not its own.

#include "cluster/socket_store.h"

#include <gmock/gmock.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "cluster/cluster_test_support.h"
#include "os/endpoint.h"
#include "os/tcp_socket.h"

namespace cohort::cluster {
namespace {

using ::testing::HasSubstr;
using Kind = StoreMessage::Kind;

const std::string kLoopback = "127.0.0.1";

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
      taker.take(key, os::SharedMemory::Pages::reserved, Deadline::in_seconds(0.0001));
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

// No time is waited, whatever time the store takes.
TEST(StoreServer, WhatMustBeThereIsTakenOrIsNot) {
  StoreServer server(Pass::draw());
  server.start();
  const os::SharedMemory memory = os::SharedMemory::create(4096);
  SocketStore giver(server.endpoint(), server.pass(), soon(), {});
  SocketStore taker(server.endpoint(), server.pass(), soon(), {});
  const auto take = [&](const std::string& key, double seconds) {
    return taker.take(key, os::SharedMemory::Pages::reserved, Deadline::in_seconds(seconds)).size();
  };
  for (int round = 0; round < 100; ++round) {
    const std::string key = "memory/" + std::to_string(round);
    const Error error = error_of([&] { take(key, 0); });
    EXPECT_EQ(error.code(), ErrorCode::timeout);
    EXPECT_THAT(error.what(), HasSubstr(key));
    giver.give(key, memory, 1);
    EXPECT_EQ(take(key, 0), 4096U);
    EXPECT_EQ(error_of([&] { take(key, 0); }).code(), ErrorCode::timeout) << "it was the only one";

    const std::string late = "late/" + std::to_string(round);
    EXPECT_EQ(error_of([&] { take(late, 0.0001); }).code(), ErrorCode::timeout);
    giver.give(late, memory, 1);
    EXPECT_EQ(take(late, 0), 4096U) << "it came for the one that had given up, or comes now";
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

}  // namespace
}  // namespace cohort::cluster
