// An end that has no memory for a message, or for who comes, refuses that and goes on. NoMemory: as a
// stream and as one message each way.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/failpoint.h"
#include "rpc/rpc.h"

namespace cohort::rpc {
namespace {

using ::testing::HasSubstr;

const cluster::Member kCaller{cluster::Member::Role::worker, 5, 11};

Deadline in_a_minute() {
  return Deadline::in_seconds(60);
}

/// Without memory at the place, and the passing, that `failpoints` names. It is set before there are
/// threads that could pass it, and removed when there are none any more.
class OutOfMemory {
 public:
  explicit OutOfMemory(const std::string& failpoints) { set_failpoints(failpoints); }
  ~OutOfMemory() { set_failpoints(""); }
};

/// A server that answers with what it is told, and one client.
struct EchoPair {
  cluster::Pass pass = cluster::Pass::draw();
  RpcServer server{"unix", pass, [](std::unique_ptr<RpcCall> call) {
                     const std::shared_ptr<RpcCall> shared = std::move(call);
                     shared->reply({shared->request()}, [shared] {});
                   }};
  RpcClient client{server.address(), pass, kCaller, {.frame_bytes = 1000}};

  Bytes call(std::size_t size, std::size_t reply_bytes) {
    const Bytes message(size, std::byte{7});
    return client.call({message}, in_a_minute(), reply_bytes);
  }

  void expect_no_memory(std::size_t size, std::size_t reply_bytes) {
    try {
      call(size, reply_bytes);
      ADD_FAILURE() << "there was memory";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::no_space);
      EXPECT_THAT(error.what(), HasSubstr("no memory"));
    }
    EXPECT_EQ(call(size, reply_bytes).size(), size) << "both ends go on";
  }
};

class NoMemory : public ::testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Ways, NoMemory, ::testing::Values(kReplyOfAnySize, 0),
                         [](const auto& test) { return test.param == 0 ? "Small" : "Stream"; });

TEST_P(NoMemory, ForARequestItIsRefused) {
  const OutOfMemory here("rpc.before-receiving=no-memory@1");
  EchoPair().expect_no_memory(500, GetParam());
}

TEST_P(NoMemory, ForAnAnswerItsCallerIsToldSo) {
  const OutOfMemory here("rpc.before-receiving=no-memory@2");
  EchoPair().expect_no_memory(500, GetParam());
}

TEST_P(NoMemory, ToSendAnAnswerItsCallerIsToldSo) {
  const OutOfMemory here("rpc.before-sending=no-memory@2");
  EchoPair().expect_no_memory(500, GetParam());
}

TEST(NoMemoryOfAStream, ForTheRestOfARequestItsCallerIsToldSo) {
  const OutOfMemory here("rpc.before-sending=no-memory@3");
  EchoPair().expect_no_memory(5000, kReplyOfAnySize);
}

TEST(NoMemoryToLetIn, DropsWhoComesAndNotWhoIsThere) {
  const OutOfMemory here("rpc.before-letting-in=no-memory@2");
  EchoPair one;
  EXPECT_EQ(one.call(10, 0).size(), 10U);
  RpcClient second(one.server.address(), one.pass, kCaller);
  try {
    second.call({}, in_a_minute(), 0);
    ADD_FAILURE() << "it was let in";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::peer_lost);
  }
  EXPECT_EQ(one.call(10, 0).size(), 10U);
  EXPECT_EQ(second.call({}, in_a_minute(), 0).size(), 0U) << "there is memory again";
}

static_assert(RpcOptions().max_message_bytes == std::size_t{64} << 20);

TEST(MessageLimit, IsSmallUntilMoreIsKnown) {
  constexpr RpcOptions kSmall{.max_message_bytes = 1000};
  const cluster::Pass pass = cluster::Pass::draw();
  const Bytes large(kSmall.max_message_bytes + 1);
  RpcServer server(
      "unix", pass,
      [&](std::unique_ptr<RpcCall> call) {
        call->request().empty() ? call->reply({large}) : call->reply({});
      },
      kSmall);
  RpcClient client(server.address(), pass, kCaller, kSmall);
  const auto refused = [&](const MessageParts& parts, std::size_t reply_bytes) {
    try {
      client.call(parts, in_a_minute(), reply_bytes);
      return false;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("1000 bytes are the most allowed"));
      return error.code() == ErrorCode::invalid;
    }
  };
  EXPECT_TRUE(refused({large}, kReplyOfAnySize));
  server.allow(large.size());
  EXPECT_FALSE(refused({large}, kReplyOfAnySize));
  EXPECT_TRUE(refused({}, kReplyOfAnySize));
  EXPECT_FALSE(refused({}, large.size()));
}

}  // namespace
}  // namespace cohort::rpc
