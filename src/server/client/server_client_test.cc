// Servers and workers as threads and processes, through shared memory and by gRPC.

#include "server/client/server_client.h"

#include <gmock/gmock.h>

#include <latch>
#include <mutex>
#include <set>
#include <thread>

#include "server/door/run_server.h"
#include "server/server_test_support.h"

namespace cohort::server {
namespace {

using testing::Each;
using testing::FloatEq;
using testing::HasSubstr;
using testing::ThrowsMessage;

class BothWays : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Client, BothWays, testing::Bool(),
                         [](const auto& test) { return test.param ? "memory" : "grpc"; });

TEST_P(BothWays, SyncAddsUpWhatAllWorkersPush) {
  constexpr std::size_t kDense = 1000;
  for (const int servers : {1, 3}) {
    for (const int workers : {1, 2, 4}) {
      Servers running(servers, workers, ShardRules::Consistency::sync);
      run_workers(workers, [&](int worker) {
        ServerClient client(client_options(worker, servers, kDense, GetParam()), running.store);
        if (worker == 0) client.initialise(model_of(std::vector<float>(kDense, 5)));
        client.exchange(pull_only());
        EXPECT_THAT(client.incoming(), Each(FloatEq(5)));
        for (int step = 1; step <= 3; ++step) {
          std::ranges::fill(client.outgoing(), 1.0F);
          Exchange exchange = push_and_pull();
          exchange.loss = 0.5;
          const ExchangeReply reply = client.exchange(exchange);
          EXPECT_EQ(reply.loss, 0.5 * workers);
          EXPECT_THAT(client.incoming(), Each(FloatEq(static_cast<float>(5 - step * workers))));
        }
        EXPECT_GT(client.traffic().sent, 3 * kDense * sizeof(float));
        EXPECT_GT(client.traffic().received, 4 * kDense * sizeof(float));
      });
      for (const cluster::ServerReport& result : running.results()) {
        EXPECT_EQ(result.version, 3U);
        EXPECT_EQ(result.counts.applied, 3U * static_cast<unsigned>(workers));
      }
    }
  }
}

TEST_P(BothWays, AsyncAppliesEveryPushOnce) {
  constexpr int kWorkers = 3, kSteps = 40;
  Servers running(2, kWorkers, ShardRules::Consistency::async);
  run_workers(kWorkers, [&](int worker) {
    ServerClient client(client_options(worker, 2, 50, GetParam()), running.store);
    if (worker == 0) client.initialise(model_of(std::vector<float>(50)));
    client.exchange(pull_only());
    for (int step = 0; step < kSteps; ++step) {
      std::ranges::fill(client.outgoing(), -1.0F);
      client.exchange(push_and_pull());
    }
  });
  for (const cluster::ServerReport& result : running.results()) {
    EXPECT_EQ(result.counts.applied, static_cast<unsigned>(kWorkers * kSteps));
    EXPECT_EQ(result.version, static_cast<unsigned>(kWorkers * kSteps));
    EXPECT_EQ(result.counts.missing + result.counts.duplicates, 0U);
  }
}

TEST_P(BothWays, WorkIsHandedOutOnce) {
  constexpr int kWorkers = 3;
  Servers running(1, kWorkers, ShardRules::Consistency::async, [](ServerOptions& options) {
    options.board = cluster::WorkBoard::Options{
        .workers = kWorkers, .left = {.parts = kWorkers}, .end_step = 20, .bound = 1};
  });
  std::mutex mutex;
  std::set<std::pair<std::int64_t, int>> done;
  std::latch all_done(kWorkers);  // What one who leaves has not pushed is handed out again.
  run_workers(kWorkers, [&](int worker) {
    ServerClient client(client_options(worker, 1, 8, GetParam()), running.store);
    if (worker == 0) client.initialise(model_of(std::vector<float>(8)));
    Exchange wanted;
    wanted.claim = true;
    while (const auto claim = client.exchange(wanted).claim) {
      const std::lock_guard lock(mutex);
      EXPECT_TRUE(done.emplace(claim->step, claim->part).second);
    }
    all_done.arrive_and_wait();
  });
  EXPECT_EQ(done.size(), 60U);
}

TEST_P(BothWays, AStopEndsTheWork) {
  Servers running(1, 1, ShardRules::Consistency::async, [](ServerOptions& options) {
    options.board = cluster::WorkBoard::Options{.end_step = 1000};
  });
  ServerClient client(client_options(0, 1, 8, GetParam()), running.store);
  client.initialise(model_of(std::vector<float>(8)));
  Exchange wanted;
  wanted.claim = true;
  EXPECT_TRUE(client.exchange(wanted).claim);
  wanted.stop = true;
  const ExchangeReply reply = client.exchange(wanted);
  EXPECT_FALSE(reply.claim);
  EXPECT_TRUE(reply.stop);
  client.close();
}

TEST_P(BothWays, RowsTravelAlone) {
  constexpr std::uint32_t kRows = 100000, kWidth = 4;
  Servers running(3, 1, ShardRules::Consistency::sync);
  ClientOptions options = client_options(0, 3, 16, GetParam());
  options.tables = {{kRows, kWidth}};
  ServerClient client(options, running.store);
  std::vector<float> table(kRows * kWidth);
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<float>(i);
  client.initialise(model_of(std::vector<float>(16), {table}));
  const auto before = client.traffic().sent + client.traffic().received;
  Exchange exchange = push_and_pull();
  exchange.rows = {{{3, 50000, 99999}, std::vector<float>(3 * kWidth, 1.0F)}};
  client.exchange(exchange);
  const std::vector<std::uint32_t> rows = {99999, 0, 50000};
  std::vector<float> values(rows.size() * kWidth);
  client.pull_rows(0, rows, values);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::uint32_t k = 0; k < kWidth; ++k) {
      const float first = table[rows[i] * kWidth + k];
      EXPECT_EQ(values[i * kWidth + k], rows[i] == 0 ? first : first - 1);
    }
  }
  EXPECT_LT(client.traffic().sent + client.traffic().received - before, 6000U);
  client.close();
}

TEST_P(BothWays, ASmallRequestSeesTheLargeOneBeforeIt) {
  constexpr std::size_t kLargeDense = rpc::kSmallMessage;  // In floats: four times as many bytes.
  Servers running(1, 1, ShardRules::Consistency::async);
  ClientOptions options = client_options(0, 1, kLargeDense, GetParam());
  options.tables = {{10, 1}};
  ServerClient client(options, running.store);
  client.initialise(model_of(std::vector<float>(kLargeDense), {std::vector<float>(10)}));
  for (int step = 1; step <= 10; ++step) {
    std::ranges::fill(client.outgoing(), 1.0F);
    Exchange push = push_and_pull();
    push.pull = step % 2 == 0;
    push.rows = {{{3}, {1.0F}}};
    client.exchange(push);
    std::vector<float> row(1);
    client.pull_rows(0, std::vector<std::uint32_t>{3}, row);
    EXPECT_EQ(row[0], -static_cast<float>(step));
    if (!push.pull) client.exchange(pull_only());
    EXPECT_EQ(client.incoming().back(), -static_cast<float>(step));
  }
  client.close();
  EXPECT_EQ(running.results()[0].counts.applied, 10U);
  EXPECT_EQ(running.results()[0].counts.duplicates, 0U);
}

TEST_P(BothWays, RowsThatNeedMoreRoomGetIt) {
  constexpr std::uint32_t kRows = 20000, kWidth = 8;
  Servers running(1, 1, ShardRules::Consistency::sync);
  ClientOptions options = client_options(0, 1, 16, GetParam());
  options.tables = {{kRows, kWidth}};
  ServerClient client(options, running.store);
  client.initialise(model_of(std::vector<float>(16), {std::vector<float>(kRows * kWidth, 2)}));
  std::vector<std::uint32_t> rows(kRows);
  for (std::uint32_t i = 0; i < kRows; ++i) rows[i] = i;
  std::vector<float> values(kRows * kWidth);
  client.pull_rows(0, rows, values);
  EXPECT_THAT(values, Each(FloatEq(2)));
  client.close();
}

TEST_P(BothWays, CompressedParametersComeNearAndAnExactPullEqual) {
  for (const char* kind : {"fp16", "int8", "topk", "sign", "lowrank"}) {
    const auto compress = [&](CompressionOptions& options) {
      options.kind = kind;
      options.ratio = 0.3;
    };
    Servers running(2, 1, ShardRules::Consistency::async,
                    [&](ServerOptions& options) { compress(options.rules.compression); });
    ClientOptions options = client_options(0, 2, 64, GetParam());
    options.matrices = {{0, 8, 8}};
    compress(options.compression);
    ServerClient client(options, running.store);
    std::vector<float> first(64);
    for (std::size_t i = 0; i < 64; ++i) first[i] = static_cast<float>(i);
    client.initialise(model_of(first));
    client.exchange(pull_only());
    EXPECT_EQ(client.incoming()[63], 63) << "the first pull is plain";
    for (int step = 0; step < 30; ++step) {
      std::ranges::fill(client.outgoing(), step == 0 ? 1.0F : 0.0F);
      client.exchange(push_and_pull());
    }
    Exchange exact = pull_only();
    exact.exact = true;
    const std::vector<float> near(client.incoming().begin(), client.incoming().end());
    client.exchange(exact);
    for (std::size_t i = 0; i < 64; ++i) {
      EXPECT_NEAR(client.incoming()[i], first[i] - 1, 0.5) << kind << " " << i;
      EXPECT_NEAR(near[i], client.incoming()[i], 0.5) << kind << " " << i;
    }
    client.close();
  }
}

TEST(Client, BothWaysAtOnceGiveTheSame) {
  Servers running(2, 2, ShardRules::Consistency::sync);
  run_workers(2, [&](int worker) {
    ServerClient client(client_options(worker, 2, 100, worker == 0), running.store);
    if (worker == 0) client.initialise(model_of(std::vector<float>(100, 1)));
    client.exchange(pull_only());
    std::ranges::fill(client.outgoing(), 0.25F);
    client.exchange(push_and_pull());
    EXPECT_THAT(client.incoming(), Each(FloatEq(0.5)));
  });
}

TEST_P(BothWays, ARefusalNamesTheServerAndStays) {
  Servers running(1, 1, ShardRules::Consistency::async);
  ServerClient client(client_options(0, 1, 8, GetParam()), running.store);
  client.initialise(model_of(std::vector<float>(8)));
  Exchange hold = push_and_pull();
  hold.hold = true;
  EXPECT_THAT([&] { client.exchange(hold); },
              ThrowsMessage<Error>(HasSubstr("parameter server 0: ")));
  EXPECT_THAT([&] { client.exchange(pull_only()); }, ThrowsMessage<Error>(HasSubstr("only sync")));
  ServerClient(client_options(0, 1, 8, GetParam()), running.store).close();
}

}  // namespace
}  // namespace cohort::server
