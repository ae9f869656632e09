// What becomes of requests that are made twice, wrong, too early or in vain.

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <thread>

#include "rpc/rpc.h"
#include "server/client/server_client.h"
#include "server/client/server_link.h"
#include "server/door/run_server.h"
#include "server/server_test_support.h"
#include "server/wire/wire.h"

namespace cohort::server {
namespace {

using testing::Each;
using testing::HasSubstr;

constexpr auto kTimeout = std::chrono::seconds(30);
constexpr std::size_t kDense = 4;

Deadline soon() {
  return Deadline::in(kTimeout);
}

/// One server on a thread; it ends with this object at the latest.
class RunningServer {
 public:
  RunningServer(int workers, ShardRules::Consistency consistency) {
    options.rules.workers = workers;
    options.rules.consistency = consistency;
    options.timeout = kTimeout;
    options.give_up = [this] { return enough.load(); };
  }
  ~RunningServer() { enough = true; }

  void start() {
    result = std::async(std::launch::async, [this] { return run_server(options, store); });
  }

  ClientOptions client(int worker, bool memory = false) const {
    ClientOptions made;
    made.worker = worker;
    made.dense = kDense;
    made.share_memory = memory;
    made.timeout = kTimeout;
    return made;
  }

  std::string address() { return server_address_from(store.get(server_key(0), soon())).rpc; }

  const cluster::Pass& pass() { return store.pass(); }

  ServerOptions options;
  cluster::MemoryStore store;
  std::atomic<bool> enough = false;  ///< Ends the server, whoever is still there.
  std::future<cluster::ServerReport> result;
};

/// Requests as they travel by gRPC, made by hand.
class RawWorker {
 public:
  RawWorker(RunningServer& server, int worker)
      : client_(server.address(), server.pass(), worker_member(worker, 0)) {
    head.header.worker = worker;
    head.header.lr = 1;
  }

  rpc::Bytes message(const std::vector<float>& rest) const {
    rpc::Bytes bytes;
    write_request(bytes, head);
    const auto raw = std::as_bytes(std::span(rest));
    bytes.insert(bytes.end(), raw.begin(), raw.end());
    return bytes;
  }

  rpc::Bytes call(const rpc::Bytes& message) { return client_.call({message}, soon()); }
  std::unique_ptr<rpc::RpcClient::Pending> start(const rpc::Bytes& message) {
    return client_.start({message}, soon());
  }

  /// The error that answers the message.
  Error refusal(const rpc::Bytes& message) {
    try {
      read_reply(call(message));
    } catch (const Error& error) {
      return error;
    }
    ADD_FAILURE() << "The message was taken.";
    return Error(ErrorCode::io, "the message was taken");
  }

  Request head;

 private:
  rpc::RpcClient client_;
};

/// A connection is one worker's, in one group, or a server's: what it says for others is refused.
TEST(ServerFaults, NobodySpeaksForAnother) {
  RunningServer server(2, ShardRules::Consistency::async);
  server.start();
  const auto refused = [&](const cluster::Member& caller, RequestKind kind, RequestHeader header) {
    rpc::Bytes message;
    write_request(message, kind, header);
    rpc::RpcClient client(server.address(), server.pass(), caller);
    try {
      read_reply(client.call({message}, soon()));
      return false;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid);
      EXPECT_THAT(error.what(), ::testing::HasSubstr("speaks as worker"));
      return true;
    }
  };
  const RequestHeader first = header_from(0, 0);
  EXPECT_FALSE(refused(worker_member(0, 0), RequestKind::look, first));
  EXPECT_TRUE(refused(worker_member(1, 0), RequestKind::look, first));
  EXPECT_TRUE(refused(worker_member(1, 0), RequestKind::leave, first));
  EXPECT_TRUE(refused(worker_member(0, 7), RequestKind::look, first)) << "of another group";
  EXPECT_TRUE(refused(server_member(0, 0), RequestKind::look, first));
  EXPECT_TRUE(refused(worker_member(0, 0), RequestKind::lost_worker, first));
  EXPECT_TRUE(refused(worker_member(0, 0), RequestKind::replica, first));
  EXPECT_FALSE(refused(server_member(0, 0), RequestKind::lost_worker, header_from(0, 1)));
}

TEST(ServerFaults, ARequestMadeAgainGetsTheSameReplyAndDoesNothingTwice) {
  RunningServer server(1, ShardRules::Consistency::async);
  server.options.board = cluster::WorkBoard::Options{.end_step = 10};
  server.start();
  ServerClient client(server.client(0), server.store);
  client.initialise(model_of(std::vector<float>(kDense, 10)));
  RawWorker worker(server, 0);
  worker.head.header.push = worker.head.header.pull = worker.head.header.claim = true;
  for (std::uint64_t request = 1; request <= 3; ++request) {
    worker.head.number = worker.head.header.sequence = request;
    const rpc::Bytes message = worker.message(std::vector<float>(kDense, 1));
    const rpc::Bytes first = worker.call(message);
    EXPECT_EQ(worker.call(message), first);
    EXPECT_EQ(read_reply(first).header.claim_step, static_cast<std::int64_t>(request) - 1);
  }
  client.close();
  const cluster::ServerReport result = server.result.get();
  EXPECT_EQ(result.counts.applied, 3U);
  EXPECT_EQ(result.counts.duplicates, 0U);
}

// By memory and by gRPC: what worker 1 pushes is left out, with its name, and worker 0 trains on.
TEST(ServerFaults, APushThatIsNotFiniteIsNobodyElsesHarm) {
  for (const bool memory : {false, true}) {
    RunningServer server(2, ShardRules::Consistency::async);
    server.start();
    ServerClient good(server.client(0, memory), server.store);
    ServerClient bad(server.client(1, memory), server.store);
    good.initialise(model_of(std::vector<float>(kDense, 10)));
    Exchange exchange;
    exchange.push = exchange.pull = true;
    exchange.lr = 1;
    std::ranges::fill(bad.outgoing(), 1.0F);
    bad.outgoing().back() = std::numeric_limits<float>::quiet_NaN();
    EXPECT_TRUE(bad.exchange(exchange).dropped);
    EXPECT_THAT(bad.incoming(), Each(10.0F));
    std::ranges::fill(good.outgoing(), 2.0F);
    EXPECT_FALSE(good.exchange(exchange).dropped);
    EXPECT_THAT(good.incoming(), Each(8.0F));
    bad.close();
    good.close();
    const cluster::ServerReport result = server.result.get();
    EXPECT_EQ(result.counts.not_finite, 1U);
    EXPECT_EQ(result.counts.applied, 1U);
  }
}

TEST(ServerFaults, AnOldRequestThatComesOnceMoreGetsNoWork) {
  RunningServer server(1, ShardRules::Consistency::async);
  server.options.board = cluster::WorkBoard::Options{.end_step = 10};
  server.start();
  ServerClient client(server.client(0), server.store);
  client.initialise(model_of(std::vector<float>(kDense, 10)));
  RawWorker worker(server, 0);
  worker.head.header.push = worker.head.header.claim = true;
  const auto push = [&](std::uint64_t number) {
    worker.head.number = worker.head.header.sequence = number;
    return read_reply(worker.call(worker.message(std::vector<float>(kDense, 1)))).header;
  };
  EXPECT_EQ(push(1).claim_step, 0);
  EXPECT_EQ(push(2).claim_step, 1);
  EXPECT_TRUE(push(1).claim_end);
  EXPECT_EQ(push(3).claim_step, 2);
  client.close();
  EXPECT_EQ(server.result.get().counts.duplicates, 1U);
}

/// Returns when the server has a request of this worker that it cannot answer yet: then it refuses
/// all others.
void wait_until_busy(RunningServer& server, int worker) {
  RawWorker other(server, worker);
  other.head.number = 1000;
  try {
    while (true) {
      ++other.head.number;
      other.call(other.message({}));
    }
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("not answered yet"));
  }
}

TEST(ServerFaults, ARequestMadeAgainWhileItWaitsIsAnsweredOnceItCanBe) {
  RunningServer server(2, ShardRules::Consistency::sync);
  server.start();
  ServerClient client(server.client(1), server.store);
  client.initialise(model_of(std::vector<float>(kDense, 10)));
  RawWorker worker(server, 0);
  worker.head.header.push = worker.head.header.pull = true;
  worker.head.number = worker.head.header.sequence = 1;
  const rpc::Bytes message = worker.message(std::vector<float>(kDense, 1));
  auto lost = worker.start(message);
  wait_until_busy(server, 0);
  lost.reset();
  const auto again = worker.start(message);

  Exchange exchange;
  exchange.push = exchange.pull = true;
  exchange.lr = 1;
  std::ranges::fill(client.outgoing(), 2.0F);
  client.exchange(exchange);
  EXPECT_THAT(client.incoming(), Each(7.0F));
  EXPECT_EQ(read_reply(again->wait()).rest.size(), kDense * sizeof(float));
  worker.head.kind = RequestKind::leave;
  worker.call(worker.message({}));
  client.close();
  const cluster::ServerReport result = server.result.get();
  EXPECT_EQ(result.counts.applied, 2U);
  EXPECT_EQ(result.counts.duplicates, 0U);
}

// Of all that a worker asks before there is a model, one request waits for it.
TEST(ServerFaults, BeforeTheFirstModelOneRequestOfAWorkerWaits) {
  constexpr std::size_t kRequests = 50;
  RunningServer server(2, ShardRules::Consistency::async);
  server.start();
  ServerClient client(server.client(1), server.store);
  RawWorker worker(server, 0);
  worker.head.header.pull = true;
  std::vector<std::unique_ptr<rpc::RpcClient::Pending>> requests;
  std::vector<rpc::Bytes> messages(kRequests);
  for (rpc::Bytes& message : messages) {
    ++worker.head.number;
    message = worker.message({});
    requests.push_back(worker.start(message));
  }
  const auto waiting = [&] {
    return std::ranges::count_if(requests, [](const auto& request) { return !request->done(); });
  };
  const Deadline deadline = soon();
  while (waiting() > 1 && !deadline.passed()) std::this_thread::yield();
  ASSERT_EQ(waiting(), 1);
  client.initialise(model_of(std::vector<float>(kDense, 10)));
  std::size_t answered = 0;
  for (const auto& request : requests) {
    try {
      answered += read_reply(request->wait()).rest.size() == kDense * sizeof(float);
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("not answered yet"));
    }
  }
  EXPECT_EQ(answered, 1U);
}

// Its connection was lost, and the first model comes later.
TEST(ServerFaults, ARequestMadeAgainBeforeTheFirstModelIsAnsweredOnce) {
  RunningServer server(2, ShardRules::Consistency::async);
  server.start();
  ServerClient client(server.client(1), server.store);
  RawWorker worker(server, 0);
  worker.head.header.push = worker.head.header.pull = true;
  worker.head.number = worker.head.header.sequence = 1;
  const rpc::Bytes message = worker.message(std::vector<float>(kDense, 1));
  const auto first = worker.start(message);
  const auto again = worker.start(message);
  const Deadline deadline = soon();
  while (!first->done() && !again->done() && !deadline.passed()) std::this_thread::yield();
  const auto& replaced = first->done() ? first : again;
  const auto& newest = first->done() ? again : first;
  try {
    replaced->wait();
    ADD_FAILURE() << "It was answered before there was a model.";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::peer_lost) << "as the connection that was lost: not refused";
  }
  client.initialise(model_of(std::vector<float>(kDense, 10)));
  EXPECT_EQ(read_reply(newest->wait()).rest.size(), kDense * sizeof(float));
  EXPECT_EQ(read_reply(worker.call(message)).header.version, 1U) << "applied once";
  worker.head.kind = RequestKind::leave;
  worker.call(worker.message({}));
  client.close();
  EXPECT_EQ(server.result.get().counts.applied, 1U);
}

TEST(ServerFaults, WrongMessagesAreRefusedAndTheServerGoesOn) {
  RunningServer server(1, ShardRules::Consistency::async);
  server.start();
  ServerClient client(server.client(0), server.store);
  client.initialise(model_of(std::vector<float>(kDense, 10)));

  RawWorker worker(server, 0);
  EXPECT_EQ(worker.refusal({}).code(), ErrorCode::corrupt);
  EXPECT_EQ(worker.refusal(rpc::Bytes(1000, std::byte{7})).code(), ErrorCode::corrupt);

  worker.head.kind = RequestKind::initialise;
  EXPECT_EQ(worker.refusal(worker.message({1, 2, 3})).code(), ErrorCode::corrupt);
  worker.head.kind = RequestKind::hello;
  EXPECT_EQ(worker.refusal(worker.message({})).code(), ErrorCode::corrupt);
  for (const std::string path : {"1 64 0 /etc/hostname /dev/shm/model", "/dev/shm/model"}) {
    rpc::Bytes greeting = worker.message({});
    std::ranges::transform(path, std::back_inserter(greeting),
                           [](char c) { return static_cast<std::byte>(c); });
    EXPECT_EQ(worker.refusal(greeting).code(), ErrorCode::corrupt) << "no path is ever opened";
  }

  worker.head.kind = RequestKind::exchange;
  worker.head.header.push = true;
  worker.head.number = worker.head.header.sequence = 1;
  EXPECT_THAT(worker.refusal(worker.message({1, 2, 3})).what(), HasSubstr("3 floats"));
  rpc::Bytes odd = worker.message({1, 2, 3, 4});
  odd.pop_back();
  worker.head.number = 2;
  EXPECT_EQ(worker.refusal(odd).code(), ErrorCode::invalid) << "the reply to number 1 again";

  RawWorker stranger(server, 1);
  EXPECT_THAT(stranger.refusal(stranger.message({})).what(), HasSubstr("worker 1"));

  Exchange pull;
  pull.pull = true;
  client.exchange(pull);
  EXPECT_THAT(client.incoming(), Each(10.0F));
}

TEST(ServerFaults, MoreRowsThanAMessageCanBringAreRefused) {
  RunningServer server(1, ShardRules::Consistency::async);
  server.start();
  ClientOptions options = server.client(0);
  options.tables = {{10, 1 << 20}};
  ServerClient client(options, server.store);
  client.initialise(
      model_of(std::vector<float>(kDense), {std::vector<float>(std::size_t{10} << 20)}));
  RawWorker worker(server, 0);
  const std::vector<std::uint32_t> rows(2000, 1);
  worker.head.rows_wanted = {{.table = 0, .rows = rows, .values = {}}};
  rpc::Bytes message;
  write_request(message, worker.head);
  EXPECT_THAT(worker.refusal(message).what(), HasSubstr("more rows"));
}

TEST(ServerFaults, ASecondFirstModelIsRefused) {
  RunningServer server(1, ShardRules::Consistency::async);
  server.start();
  ServerClient client(server.client(0), server.store);
  client.initialise(model_of(std::vector<float>(kDense, 1)));
  EXPECT_THROW(client.initialise(model_of(std::vector<float>(kDense, 2))), Error);
}

class ServerFaultsBothWays : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Ways, ServerFaultsBothWays, testing::Bool(),
                         [](const auto& test) { return test.param ? "memory" : "grpc"; });

TEST_P(ServerFaultsBothWays, WorkersMayLeaveBeforeTheFirstModel) {
  RunningServer server(2, ShardRules::Consistency::sync);
  server.start();
  for (const int worker : {0, 1}) {
    ServerClient(server.client(worker, GetParam()), server.store).close();
  }
  EXPECT_EQ(server.result.get().version, 0U);
}

TEST_P(ServerFaultsBothWays, AnAnswerThatDoesNotComeIsATimeoutThatStays) {
  RunningServer server(2, ShardRules::Consistency::sync);
  server.start();
  ClientOptions options = server.client(0, GetParam());
  options.timeout = std::chrono::milliseconds(300);
  ServerClient client(options, server.store);
  client.initialise(model_of(std::vector<float>(kDense)));
  Exchange push;
  push.push = true;
  for (int i = 0; i < 2; ++i) {
    try {
      client.exchange(push);
      FAIL() << "It was answered without the other worker.";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::timeout);
      EXPECT_THAT(error.what(), HasSubstr("parameter server 0"));
    }
  }
  // Both leave, also after an error, and the server ends.
  client.close();
  ServerClient(server.client(1, GetParam()), server.store).close();
  server.result.get();
}

TEST_P(ServerFaultsBothWays, AWorkerMayComeBackWithAnotherClient) {
  RunningServer server(2, ShardRules::Consistency::async);
  server.start();
  Exchange exchange;
  exchange.pull = true;
  ServerClient first(server.client(0, GetParam()), server.store);
  first.initialise(model_of(std::vector<float>(kDense, 3)));
  first.exchange(exchange);
  ServerClient second(server.client(0, GetParam()), server.store);
  second.exchange(exchange);
  EXPECT_THAT(second.incoming(), Each(3.0F));
  second.close();
  ServerClient(server.client(1, GetParam()), server.store).close();
  server.result.get();
}

TEST(ServerFaults, AServerThatGivesUpTellsThoseWhoWait) {
  RunningServer server(2, ShardRules::Consistency::sync);
  server.start();
  ServerClient client(server.client(0, true), server.store);
  client.initialise(model_of(std::vector<float>(kDense)));
  server.enough = true;
  Exchange push;
  push.push = true;
  try {
    client.exchange(push);
    FAIL() << "It was answered without the other worker.";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::peer_lost);
  }
  server.result.get();
}

TEST(ServerFaults, AWorkerThatNeverComesIsNamed) {
  RunningServer server(2, ShardRules::Consistency::sync);
  server.options.timeout = std::chrono::seconds(2);
  server.start();
  ServerClient client(server.client(0, true), server.store);
  try {
    server.result.get();
    FAIL() << "The server ended without an error.";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::timeout);
    EXPECT_THAT(error.what(), HasSubstr("worker 1"));
  }
}

}  // namespace
}  // namespace cohort::server
