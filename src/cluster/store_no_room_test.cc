// A store whose process has no memory or no descriptor left drops or refuses the one it was for, and
// serves the others.

#include <cohort/error.h>
#include <gtest/gtest.h>

#include <optional>

#include "base/failpoint.h"
#include "cluster/cluster_test_support.h"
#include "cluster/socket_store.h"

namespace cohort::cluster {
namespace {

using Pages = os::SharedMemory::Pages;

Deadline in_a_minute() {
  return Deadline::in_seconds(60);
}

/// A server without memory at the place, and the passing, that `failpoints` names. It is set before
/// there is a thread that could pass it, and removed when there is none any more.
class ShortOfMemory {
 public:
  explicit ShortOfMemory(const std::string& failpoints) {
    set_failpoints(failpoints);
    server_.emplace(Pass::draw());
    server_->start();
  }
  ~ShortOfMemory() {
    server_.reset();
    set_failpoints("");
  }

  SocketStore client() const { return {server_->endpoint(), server_->pass(), in_a_minute(), {}}; }

 private:
  std::optional<StoreServer> server_;
};

template <class Action>
ErrorCode code_of(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "no Error was thrown";
  return ErrorCode::cancelled;
}

TEST(StoreWithoutMemory, DropsWhoComesAndServesTheOthers) {
  const ShortOfMemory server("store.before-letting-in=no-memory@2");
  SocketStore first = server.client();
  first.set("first", "");
  SocketStore second = server.client();
  EXPECT_EQ(code_of([&] { second.set("second", ""); }), ErrorCode::peer_lost);
  first.set("third", "");
  server.client().set("fourth", "");
}

TEST(StoreWithoutMemory, DropsWhoAsksAndServesTheOthers) {
  const ShortOfMemory server("store.before-answering=no-memory@2");
  SocketStore first = server.client(), second = server.client();
  first.set("first", "");
  EXPECT_EQ(code_of([&] { second.set("second", ""); }), ErrorCode::peer_lost);
  first.set("third", "");
}

/// Whether the request of a client that waits is at the server needs no asking: it was sent before
/// the other's, and clients are served in the order in which they came.
void ask_and_give_up(SocketStore& client, const std::string& key) {
  EXPECT_EQ(code_of([&] { client.get(key, Deadline::in_seconds(0)); }), ErrorCode::timeout);
}

TEST(StoreWithoutMemory, DropsWhoWaitsAndNotWhoSetsTheKey) {
  const ShortOfMemory server("store.before-handing-over=no-memory@2");
  SocketStore waits = server.client(), sets = server.client();
  waits.set("here", "");
  sets.set("there", "");
  ask_and_give_up(waits, "key");
  sets.set("key", "value");
  EXPECT_EQ(sets.get("key", in_a_minute()), "value");
  EXPECT_EQ(code_of([&] { waits.set("again", ""); }), ErrorCode::peer_lost);
}

// The descriptor that comes in is the last: there is none for the taker, who waits.
TEST(StoreWithoutDescriptors, RefusesWhoTakesAndNotWhoGives) {
  const ShortOfMemory server("");
  SocketStore takes = server.client(), gives = server.client();
  takes.set("here", "");
  gives.set("there", "");
  const os::SharedMemory memory = os::SharedMemory::create(4096);
  const auto take = [&](Deadline deadline) {
    return takes.take("memory", Pages::reserved, deadline).size();
  };
  EXPECT_EQ(code_of([&] { take(Deadline::in_seconds(0.02)); }), ErrorCode::timeout);
  {
    const DescriptorsLeft last(1);
    gives.give("memory", memory, 2);
    EXPECT_EQ(code_of([&] { take(in_a_minute()); }), ErrorCode::invalid);
  }
  EXPECT_EQ(take(in_a_minute()), 4096U) << "it has not counted as taken";
  EXPECT_EQ(take(in_a_minute()), 4096U);
  EXPECT_EQ(code_of([&] { take(Deadline::in_seconds(0.02)); }), ErrorCode::timeout);
}

}  // namespace
}  // namespace cohort::cluster
