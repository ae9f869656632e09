// Proves what a caller sees of sizes, threads, late answers, lost servers, refusals and cancelled
// calls. The tests of RpcWays run for both kinds of calls, streams and small ones.

#include "rpc/rpc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>

namespace cohort::rpc {
namespace {

/// Of the run that all servers and clients here are of.
const cluster::Pass& pass() {
  static const cluster::Pass pass = cluster::Pass::draw();
  return pass;
}
const cluster::Member kSelf{cluster::Member::Role::worker, 5, 11};

using ::testing::HasSubstr;

// ThreadSanitizer does not see that gRPC hands bytes from thread to thread properly, and examines
// each of them; see grpc_setup.cc.
#if defined(__SANITIZE_THREAD__)
constexpr std::size_t kLarge = 64 << 10;
#else
constexpr std::size_t kLarge = 64 << 20;
#endif
constexpr std::size_t kFrame = kLarge / 64;

Deadline soon() {
  return Deadline::in_seconds(60);
}

Bytes message(std::size_t size, unsigned seed = 1) {
  Bytes bytes(size);
  unsigned value = seed;
  for (std::byte& byte : bytes) {
    value = value * 1664525 + 1013904223;
    byte = static_cast<std::byte>(value >> 24);
  }
  return bytes;
}

MessageParts parts_of(const Bytes& bytes) {
  return {std::span(bytes)};
}

Bytes text(const std::string& words) {
  const auto* bytes = reinterpret_cast<const std::byte*>(words.data());
  return Bytes(bytes, bytes + words.size());
}

/// What `action` fails with; a test failure when it does not.
template <class Action>
Error error_from(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "Nothing was thrown.";
  return Error(ErrorCode::invalid, "nothing was thrown");
}

void echo(std::unique_ptr<RpcCall> call) {
  const std::shared_ptr<RpcCall> shared = std::move(call);
  // Keeping the call until `sent` keeps the request it answers with.
  shared->reply({shared->request()}, [shared] {});
}

/// Keeps the calls it gets for the test to answer.
class Mailbox {
 public:
  RpcServer::Handler handler() {
    return [this](std::unique_ptr<RpcCall> call) {
      const std::lock_guard lock(mutex_);
      calls_.push_back(std::move(call));
      arrived_.notify_all();
    };
  }

  std::unique_ptr<RpcCall> take() {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [&] { return !calls_.empty(); });
    auto call = std::move(calls_.back());
    calls_.pop_back();
    return call;
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<std::unique_ptr<RpcCall>> calls_;
};

class RpcAddressTest : public ::testing::TestWithParam<const char*> {};

TEST_P(RpcAddressTest, EchoesMessagesOfAllSizes) {
  RpcServer server(GetParam(), pass(), echo, {.frame_bytes = kFrame});
  RpcClient client(server.address(), pass(), kSelf, {.frame_bytes = kFrame});
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, kFrame, kFrame + 1, kLarge}) {
    const Bytes sent = message(size);
    EXPECT_TRUE(client.call(parts_of(sent), soon()) == sent) << size << " bytes";
  }
}

INSTANTIATE_TEST_SUITE_P(Addresses, RpcAddressTest, ::testing::Values("unix", "127.0.0.1:0"),
                         [](const auto& test) { return test.param[0] == 'u' ? "Unix" : "Tcp"; });

/// What every call promises, as a stream and as one message each way: by what the caller says of
/// the reply's size.
class RpcWays : public ::testing::TestWithParam<std::size_t> {};

INSTANTIATE_TEST_SUITE_P(Ways, RpcWays, ::testing::Values(kReplyOfAnySize, 0),
                         [](const auto& test) { return test.param == 0 ? "Small" : "Stream"; });

TEST(Rpc, TellsThePortThatTheKernelPicked) {
  RpcServer server("127.0.0.1:0", pass(), echo);
  EXPECT_THAT(server.address(), ::testing::MatchesRegex("127.0.0.1:[1-9][0-9]*"));
}

TEST(Rpc, RefusesAnAddressThatIsTaken) {
  RpcServer server("127.0.0.1:0", pass(), echo);
  EXPECT_EQ(error_from([&] { RpcServer second(server.address(), pass(), echo); }).code(),
            ErrorCode::io);
}

TEST(Rpc, SendsPartsOneAfterTheOtherInFramesOfAnySize) {
  RpcServer server("unix", pass(), echo, {.frame_bytes = 3});
  RpcClient client(server.address(), pass(), kSelf, {.frame_bytes = 7});
  const Bytes first = text("one "), nothing, second = text("and a rather longer two");
  const Bytes reply = client.call({first, nothing, second, nothing}, soon());
  EXPECT_EQ(reply, text("one and a rather longer two"));
}

TEST_P(RpcWays, AnswersManyCallsOfManyThreads) {
  RpcServer server("unix", pass(), echo);
  RpcClient client(server.address(), pass(), kSelf);
  std::atomic<int> right = 0;
  {
    std::vector<std::jthread> threads;
    for (unsigned thread = 0; thread < 8; ++thread) {
      threads.emplace_back([&, thread] {
        for (unsigned call = 0; call < 50; ++call) {
          const Bytes sent = message(100 * call, thread * 100 + call);
          right += client.call(parts_of(sent), soon(), GetParam()) == sent;
        }
      });
    }
  }
  EXPECT_EQ(right, 8 * 50);
}

TEST(Rpc, AnswersLaterAndInAnyOrderFromAnotherThread) {
  Mailbox mailbox;
  RpcServer server("unix", pass(), mailbox.handler());
  RpcClient client(server.address(), pass(), kSelf, {.frame_bytes = kFrame});
  const Bytes sent = message(3 * kFrame);
  const auto first = client.start(parts_of(sent), soon());
  auto held = mailbox.take();
  const auto second = client.start(parts_of(sent), soon());
  mailbox.take()->reply({});
  EXPECT_EQ(second->wait(), Bytes());
  EXPECT_FALSE(first->done());

  const Bytes answer = text("late");
  std::promise<void> sent_off;
  std::jthread thread([&] { held->reply(parts_of(answer), [&] { sent_off.set_value(); }); });
  EXPECT_EQ(first->wait(), answer);
  EXPECT_TRUE(first->done());
  sent_off.get_future().wait();
}

TEST_P(RpcWays, CarriesTheErrorOfTheServer) {
  RpcServer server("unix", pass(), [](std::unique_ptr<RpcCall> call) {
    call->fail(Error(ErrorCode::diverged, "The loss of worker 3 is nän.").about_rank(3));
  });
  RpcClient client(server.address(), pass(), kSelf);
  const Error error = error_from([&] { client.call({}, soon(), GetParam()); });
  EXPECT_EQ(error.code(), ErrorCode::diverged);
  EXPECT_STREQ(error.what(), "The loss of worker 3 is nän.");
  EXPECT_EQ(error.rank(), 3);
}

TEST_P(RpcWays, CutsTheTextOfAnEndlessError) {
  RpcServer server("unix", pass(), [](std::unique_ptr<RpcCall> call) {
    call->fail(Error(ErrorCode::io, std::string(100'000, 'x')));
  });
  RpcClient client(server.address(), pass(), kSelf);
  const Error error = error_from([&] { client.call({}, soon(), GetParam()); });
  EXPECT_EQ(error.code(), ErrorCode::io);
  EXPECT_THAT(error.what(), HasSubstr("xxxx"));
}

TEST_P(RpcWays, GivesUpAtTheDeadline) {
  Mailbox mailbox;
  RpcServer server("unix", pass(), mailbox.handler());
  RpcClient client(server.address(), pass(), kSelf);
  const auto first = client.start({}, soon(), GetParam());
  const auto held = mailbox.take();
  EXPECT_EQ(error_from([&] { client.call({}, Deadline::in_seconds(0.1), GetParam()); }).code(),
            ErrorCode::timeout);
  EXPECT_FALSE(first->done());
}

TEST_P(RpcWays, LetsGoOfAnAnswerThatNobodyWaitsFor) {
  Mailbox mailbox;
  RpcServer server("unix", pass(), mailbox.handler());
  RpcClient client(server.address(), pass(), kSelf);
  auto cancelled = client.start({}, soon(), GetParam());
  const auto call = mailbox.take();
  cancelled.reset();
  const Bytes late = text("late");
  std::promise<void> released;
  call->reply(parts_of(late), [&] { released.set_value(); });
  released.get_future().wait();
}

TEST_P(RpcWays, LosesItsServer) {
  Mailbox mailbox;
  auto server = std::make_unique<RpcServer>("unix", pass(), mailbox.handler());
  RpcClient client(server->address(), pass(), kSelf);
  const auto first = client.start({}, soon(), GetParam());
  const auto second = client.start({}, soon(), GetParam());
  const auto held = mailbox.take();
  server.reset();
  EXPECT_EQ(error_from([&] { first->wait(); }).code(), ErrorCode::peer_lost);
  EXPECT_EQ(error_from([&] { second->wait(); }).code(), ErrorCode::peer_lost);
  EXPECT_EQ(error_from([&] { client.call({}, soon(), GetParam()); }).code(), ErrorCode::peer_lost);
  // A call that outlives its server can be answered; nobody hears it.
  bool released = false;
  held->reply({}, [&] { released = true; });
  EXPECT_TRUE(released);
}

TEST_P(RpcWays, TellsTheServerWhoCalls) {
  std::vector<cluster::Member> callers;
  RpcServer server("unix", pass(), [&](std::unique_ptr<RpcCall> call) {
    callers.push_back(call->caller());
    call->reply({});
  });
  const cluster::Member other{cluster::Member::Role::server, 0, 12};
  RpcClient(server.address(), pass(), kSelf).call({}, soon(), GetParam());
  RpcClient second(server.address(), pass(), other);
  second.call({}, soon(), GetParam());
  RpcClient(server.address(), pass(), kSelf).call({}, soon(), GetParam());
  second.call({}, soon(), GetParam());
  EXPECT_EQ(callers, (std::vector{kSelf, other, kSelf, other}));
}

TEST_P(RpcWays, NeitherEndTalksToWhoDoesNotKnowTheSecret) {
  std::atomic<int> calls = 0;
  RpcServer server("127.0.0.1:0", pass(), [&](std::unique_ptr<RpcCall> call) {
    ++calls;
    call->reply({});
  });
  RpcClient stranger(server.address(), cluster::Pass::draw(), kSelf);
  const Error error = error_from([&] { stranger.call({}, soon(), GetParam()); });
  EXPECT_EQ(error.code(), ErrorCode::invalid);
  EXPECT_THAT(error.what(), HasSubstr("COHORT_SECRET_FILE"));
  RpcClient(server.address(), pass(), kSelf).call({}, soon(), GetParam());
  EXPECT_EQ(calls, 1);
}

TEST_P(RpcWays, FindsNobody) {
  for (const char* address : {"unix:nobody", "127.0.0.1:1"}) {
    RpcClient client(address, pass(), kSelf);
    const Deadline deadline = soon();
    const Error error = error_from([&] { client.call({}, deadline, GetParam()); });
    EXPECT_EQ(error.code(), ErrorCode::peer_lost);
    EXPECT_THAT(error.what(), HasSubstr(address));
    EXPECT_FALSE(deadline.passed());
  }
}

TEST_P(RpcWays, ReachesAServerThatCameBack) {
  auto server = std::make_unique<RpcServer>("127.0.0.1:0", pass(), echo);
  const std::string address = server->address();
  RpcClient client(address, pass(), kSelf);
  EXPECT_EQ(client.call({}, soon(), GetParam()), Bytes());
  server.reset();
  EXPECT_EQ(error_from([&] { client.call({}, soon(), GetParam()); }).code(), ErrorCode::peer_lost);
  server = std::make_unique<RpcServer>(address, pass(), echo);
  const Deadline deadline = soon();
  bool reached = false;
  while (!reached && !deadline.passed()) {
    try {
      client.call({}, deadline, GetParam());
      reached = true;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::peer_lost);
    }
  }
  EXPECT_TRUE(reached);
}

TEST_P(RpcWays, RefusesMessagesAboveTheLimit) {
  const Bytes large = message(1001), fitting = message(1000);
  RpcServer server("unix", pass(), echo, {.max_message_bytes = 1000});
  RpcClient client(server.address(), pass(), kSelf);
  EXPECT_EQ(client.call(parts_of(fitting), soon(), GetParam()), fitting);
  const Error refused = error_from([&] { client.call(parts_of(large), soon(), GetParam()); });
  EXPECT_EQ(refused.code(), ErrorCode::invalid);
  EXPECT_THAT(refused.what(), HasSubstr("1001"));

  RpcClient careful(server.address(), pass(), kSelf, {.max_message_bytes = 999});
  const Error answer = error_from([&] { careful.call(parts_of(fitting), soon(), GetParam()); });
  EXPECT_EQ(answer.code(), ErrorCode::invalid);
  EXPECT_THAT(answer.what(), HasSubstr("999"));
}

TEST(Rpc, BringsAReplyThatIsLargerThanItsCallerSaid) {
  const Bytes large = message(kLarge / 2);
  RpcServer server("unix", pass(),
                   [&](std::unique_ptr<RpcCall> call) { call->reply(parts_of(large)); });
  RpcClient client(server.address(), pass(), kSelf);
  EXPECT_TRUE(client.call({}, soon(), 1) == large);
}

TEST(Rpc, RefusesAReplyThatNoOneMessageCanBring) {
  const Bytes piece(1 << 20);
  const MessageParts parts(65, piece);
  RpcServer server("unix", pass(), [&](std::unique_ptr<RpcCall> call) {
    bool released = false;
    call->reply(parts, [&] { released = true; });
    EXPECT_TRUE(released);
  });
  RpcClient client(server.address(), pass(), kSelf);
  const Error error = error_from([&] { client.call({}, soon(), 1); });
  EXPECT_EQ(error.code(), ErrorCode::invalid);
  EXPECT_THAT(error.what(), HasSubstr(std::to_string(65 << 20)));
}

TEST(Rpc, BringsSmallAndLargeCallsOfOneClient) {
  std::mutex mutex;
  std::vector<std::size_t> come;
  RpcServer server("unix", pass(), [&](std::unique_ptr<RpcCall> call) {
    {
      const std::lock_guard lock(mutex);
      come.push_back(call->request().size());
    }
    call->reply({});
  });
  RpcClient client(server.address(), pass(), kSelf);
  std::vector<std::size_t> sent;
  for (const std::size_t size : {std::size_t{1}, kSmallMessage + 1, std::size_t{2}, kSmallMessage,
                                 kSmallMessage + 2, std::size_t{3}}) {
    const Bytes bytes = message(size);
    client.call(parts_of(bytes), soon(), 0);
    sent.push_back(size);
  }
  const std::lock_guard lock(mutex);
  EXPECT_EQ(come, sent);
}

TEST(Rpc, RefusesFramesThatNobodyWouldTake) {
  RpcServer server("unix", pass(), echo);
  for (const std::size_t size : {std::size_t{0}, std::size_t{1} << 30}) {
    RpcClient client(server.address(), pass(), kSelf, {.frame_bytes = size});
    EXPECT_EQ(error_from([&] { client.call({}, soon()); }).code(), ErrorCode::invalid);
  }
}

TEST_P(RpcWays, FailsACallThatIsDroppedUnanswered) {
  RpcServer server("unix", pass(), [](std::unique_ptr<RpcCall>) {});
  RpcClient client(server.address(), pass(), kSelf);
  const Error error = error_from([&] { client.call({}, soon(), GetParam()); });
  EXPECT_EQ(error.code(), ErrorCode::peer_lost);
  EXPECT_THAT(error.what(), HasSubstr("without an answer"));
}

TEST_P(RpcWays, ForgetsACallThatIsCancelled) {
  const Bytes large = message(kLarge), small = text("held"), next = text("next");
  Mailbox mailbox;
  RpcServer server("unix", pass(), [&, hold = mailbox.handler()](std::unique_ptr<RpcCall> call) {
    const auto request = call->request();
    if (request.size() == large.size()) return;  // All of it may have come before it was cancelled.
    std::equal(request.begin(), request.end(), next.begin()) ? call->reply({})
                                                             : hold(std::move(call));
  });
  RpcClient client(server.address(), pass(), kSelf);
  {
    const Bytes gone_soon = large;
    const auto cancelled = client.start(parts_of(gone_soon), soon(), GetParam());
  }
  auto cancelled = client.start(parts_of(small), soon(), GetParam());
  const auto held = mailbox.take();
  cancelled.reset();
  // The server goes on for others.
  EXPECT_EQ(client.call(parts_of(next), soon(), GetParam()), Bytes());
  held->reply(parts_of(small));
}

TEST(Rpc, CountsBytes) {
  RpcServer server("unix", pass(), echo);
  RpcClient client(server.address(), pass(), kSelf, {.frame_bytes = 1000});
  EXPECT_EQ(client.traffic().sent, 0u);
  client.call(parts_of(message(10'000)), soon());
  EXPECT_GT(client.traffic().sent, 10'000u);
  EXPECT_LT(client.traffic().sent, 10'200u);
  EXPECT_GT(client.traffic().received, 10'000u);
  EXPECT_LT(client.traffic().received, 10'100u);
}

}  // namespace
}  // namespace cohort::rpc
