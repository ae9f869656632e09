// Connecting by libgloo: ranks that never come, addresses that are wrong, keys of groups. What
// becomes of messages is in the conformance suite.

#include "transport/gloo/gloo.h"

#include <cohort/error.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>

namespace cohort::transport {
namespace {

using ::testing::HasSubstr;

TEST(Gloo, NamesTheRankThatNeverCame) {
  cluster::MemoryStore store;
  try {
    make_gloo_transport(0, 2, store, {.connect_timeout = std::chrono::milliseconds(50)});
    FAIL() << "connected with nobody";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::timeout);
    EXPECT_EQ(error.rank(), 1);
    EXPECT_THAT(error.what(), HasSubstr("Rank 1"));
  }
}

TEST(Gloo, NamesAnAddressThatIsNotOfThisHost) {
  cluster::MemoryStore store;
  try {
    make_gloo_transport(0, 2, store, {.bind_address = "no-such-host.invalid"});
    FAIL() << "bound to another host";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::io);
    EXPECT_THAT(error.what(), HasSubstr("no-such-host.invalid"));
  }
}

TEST(Gloo, RefusesAddressesItCannotRead) {
  cluster::MemoryStore store;
  store.set("group/0/addresses" + store.mark_of_rank(1), "");
  try {
    make_gloo_transport(0, 2, store, {.key_prefix = "group"});
    FAIL() << "connected to an empty address";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::corrupt);
  }
}

/// The store of who has another secret, the first few times it is asked.
class StrangersStore : public cluster::PrefixStore {
 public:
  StrangersStore(cluster::Store& store, int times) : PrefixStore(store, ""), times_(times) {}

  const cluster::Pass& pass() override {
    return times_-- > 0 ? strange_ : cluster::PrefixStore::pass();
  }

 private:
  cluster::Pass strange_ = cluster::Pass::draw();
  std::atomic<int> times_;
};

TEST(Gloo, AStrangerThatTakesAConnectionIsFoundOut) {
  cluster::MemoryStore store;
  StrangersStore stranger(store, 100);
  const auto code_of = [](int rank, cluster::Store& with) {
    try {
      make_gloo_transport(rank, 2, with, {.key_prefix = "stranger"});
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::cancelled;
  };
  auto other = std::async(std::launch::async, code_of, 1, std::ref(stranger));
  EXPECT_EQ(code_of(0, store), ErrorCode::invalid);
  EXPECT_EQ(other.get(), ErrorCode::invalid) << "a member is as little of a stranger's group";
}

TEST(Gloo, WhereAStrangerHasTakenAConnectionAllConnectAnew) {
  cluster::MemoryStore store;
  StrangersStore once(store, 1);
  const auto connect = [](int rank, cluster::Store& with) {
    return make_gloo_transport(rank, 2, with, {.key_prefix = "again"});
  };
  auto one = std::async(std::launch::async, connect, 1, std::ref(once));
  EXPECT_EQ(connect(0, store)->rank(), 0);
  EXPECT_EQ(one.get()->rank(), 1);
}

TEST(Gloo, GroupsOfOneStoreAreKeptApartByTheirPrefix) {
  cluster::MemoryStore store;
  for (const std::string prefix : {"first", "second"}) {
    const auto connect = [&](int rank) {
      return make_gloo_transport(rank, 2, store, {.key_prefix = prefix});
    };
    auto one = std::async(std::launch::async, connect, 1);
    const auto zero = connect(0);
    EXPECT_EQ(zero->rank(), 0);
    EXPECT_EQ(one.get()->rank(), 1);
  }
}

}  // namespace
}  // namespace cohort::transport
