#include <gtest/gtest.h>
#include <unistd.h>

#include "cluster/host_id.h"
#include "server/client/server_link.h"

namespace cohort {
namespace {

TEST(ServerAddress, IsTheSameAfterItsWayThroughTheStore) {
  const ServerAddress address{
      .host = host_id(), .pid = 42, .rpc = "127.0.0.1:77", .door = "/proc/42/fd/3"};
  const ServerAddress found = server_address_from(to_text(address));
  EXPECT_EQ(found.host, address.host);
  EXPECT_EQ(found.pid, 42);
  EXPECT_EQ(found.rpc, address.rpc);
  EXPECT_EQ(found.door, address.door);
}

TEST(ServerAddress, RefusesOtherTexts) {
  EXPECT_THROW(server_address_from(""), Error);
  EXPECT_THROW(server_address_from("42 127.0.0.1:77"), Error);
}

TEST(ServerAddress, OnlyAServerOfThisHostIsWatched) {
  const ServerAddress elsewhere{.host = "elsewhere", .pid = 1 << 30, .rpc = {}, .door = {}};
  EXPECT_NO_THROW(check_server(watch_server(elsewhere), elsewhere));
  const ServerAddress here{.host = host_id(), .pid = 1 << 30, .rpc = {}, .door = {}};
  EXPECT_THROW(watch_server(here), Error);
  const ServerAddress self{.host = host_id(), .pid = ::getpid(), .rpc = {}, .door = {}};
  EXPECT_NO_THROW(check_server(watch_server(self), self));
}

}  // namespace
}  // namespace cohort
