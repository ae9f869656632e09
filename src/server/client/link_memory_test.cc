// What both ends of compressed messages remember, saved and gone on from with new servers: the same
// bits come as if nobody had stopped.

#include "server/client/server_client.h"

#include <gmock/gmock.h>

#include <mutex>

#include "base/random.h"
#include "server/server_test_support.h"

namespace cohort::server {
namespace {

struct LinkCase {
  std::string codec;
  bool memory;
};

class Links : public testing::TestWithParam<LinkCase> {
 protected:
  static constexpr int kWorkers = 2, kServers = 2;
  static constexpr std::size_t kFloats = 600;

  struct End {
    ServerModel model;
    std::vector<LinkMemory> links = std::vector<LinkMemory>(kWorkers);
    std::vector<std::vector<float>> has = std::vector<std::vector<float>>(kWorkers);
  };

  CompressionOptions compression() const {
    CompressionOptions options;
    options.kind = GetParam().codec;
    options.ratio = 0.05;
    options.rank = 2;
    return options;
  }

  /// Steps [begin, end) of a sync training, from where another one has ended.
  End train(int begin, int end, const End* start) const {
    Servers running(kServers, kWorkers, ShardRules::Consistency::sync,
                    [&](ServerOptions& options) { options.rules.compression = compression(); });
    End result;
    run_workers(kWorkers, [&](int worker) {
      ClientOptions options = client_options(worker, kServers, kFloats, GetParam().memory);
      options.matrices = {{.offset = 0, .rows = 20, .columns = 12}};
      options.compression = compression();
      options.momentum.factor = 0.9;
      ServerClient client(options, running.store);
      const auto index = static_cast<std::size_t>(worker);
      if (worker == 0) {
        client.initialise(start != nullptr ? start->model
                                           : model_of(std::vector<float>(kFloats, 1)));
      }
      client.exchange(pull_only());
      if (start != nullptr) client.recall(start->links[index]);
      for (int step = begin; step < end; ++step) {
        Random random(static_cast<std::uint64_t>(100 * step + worker));
        for (float& value : client.outgoing()) value = static_cast<float>(random.uniform()) - 0.5F;
        Exchange exchange = push_and_pull();
        exchange.lr = 0.1;
        exchange.save = worker == 0 && step + 1 == end;
        EXPECT_EQ(client.exchange(exchange).save, step + 1 == end) << "all are told";
      }
      result.links[index] = client.memory();
      result.has[index].assign(client.incoming().begin(), client.incoming().end());
      if (worker == 0) client.read_model(result.model);
    });
    return result;
  }
};

TEST_P(Links, GoOnAsIfNobodyHadStopped) {
  const End whole = train(0, 6, nullptr);
  const End first = train(0, 3, nullptr);
  const End second = train(3, 6, &first);
  EXPECT_EQ(second.model.dense.values, whole.model.dense.values);
  EXPECT_EQ(second.has, whole.has);
  EXPECT_EQ(second.links, whole.links);
  EXPECT_NE(first.links[0].rest, first.links[1].rest) << "each has its own";
}

INSTANTIATE_TEST_SUITE_P(All, Links,
                         testing::Values(LinkCase{"topk", true}, LinkCase{"topk", false},
                                         LinkCase{"sign", true}, LinkCase{"sign", false},
                                         LinkCase{"int8", true}, LinkCase{"int8", false},
                                         LinkCase{"lowrank", true}, LinkCase{"lowrank", false}),
                         [](const auto& test) {
                           return test.param.codec + (test.param.memory ? "_memory" : "_grpc");
                         });

}  // namespace
}  // namespace cohort::server
