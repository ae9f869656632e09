// What the store says of a server, and a worker of itself, survives its way as text.

#include "server/wire/server_address.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "cluster/host_id.h"

namespace cohort::server {
namespace {

TEST(ServerAddress, IsTheSameAfterItsWayThroughTheStore) {
  const ServerAddress address{.host = cluster::host_id(), .pid = 42, .rpc = "127.0.0.1:77"};
  const ServerAddress found = server_address_from(to_text(address));
  EXPECT_EQ(found.host, address.host);
  EXPECT_EQ(found.pid, 42);
  EXPECT_EQ(found.rpc, address.rpc);
}

TEST(ServerAddress, RefusesOtherTexts) {
  EXPECT_THROW(server_address_from(""), Error);
  EXPECT_THROW(server_address_from("42"), Error);
  EXPECT_THROW(server_address_from("0 unix:calls-0 here"), Error);
  EXPECT_THROW(server_address_from("-1 unix:calls-0 here"), Error);
  EXPECT_THROW(server_address_from("4294967297 unix:calls-0 here"), Error) << "would be process 1";
}

TEST(ServerAddress, OnlyAServerOfThisHostIsWatched) {
  const ServerAddress elsewhere{.host = "elsewhere", .pid = 1 << 30, .rpc = {}};
  EXPECT_NO_THROW(check_server(watch_server(elsewhere), elsewhere));
  const ServerAddress here{.host = cluster::host_id(), .pid = 1 << 30, .rpc = {}};
  EXPECT_THROW(watch_server(here), Error);
  const ServerAddress self{.host = cluster::host_id(), .pid = ::getpid(), .rpc = {}};
  EXPECT_NO_THROW(check_server(watch_server(self), self));
}

TEST(Hello, IsTheSameAfterItsWayToTheServer) {
  const std::string text = to_text(
      Hello{.pid = 42, .floats_number = 7, .floats = 100, .part_begin = 50, .side_number = 8});
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  EXPECT_EQ(hello_from(bytes).side_number, 8u);
  EXPECT_THROW(hello_from(bytes.first(5)), Error);
  EXPECT_THROW(hello_from({}), Error);
  // Paths and what is no number are nothing that a worker may say, and no process is below 1.
  for (const std::string other :
       {"42 100 50 /dev/shm/model 8", "42 100 50 7 8 9", "42 100 50 7", "42 -1 0 7 8", "0 1 0 7 8",
        "-1", "4294967297", "42 99999999999999999999 0 7 8", "unix:/tmp/x", " "}) {
    EXPECT_THROW(hello_from(std::as_bytes(std::span(other.data(), other.size()))), Error) << other;
  }
  const std::string short_text = to_text(Hello{.pid = 42});
  EXPECT_EQ(hello_from(std::as_bytes(std::span(short_text.data(), short_text.size()))).pid, 42);
}

}  // namespace
}  // namespace cohort::server
