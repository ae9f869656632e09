// What servers that have ended left in their memory, as the launcher finds it.

#include "train/run/server_memories.h"

#include <cohort/model.h>
#include <gmock/gmock.h>

namespace cohort::training {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

struct SmallNet : torch::nn::Module {
  SmallNet() { weights = register_parameter("weights", torch::zeros({64})); }
  torch::Tensor forward(const torch::Tensor& input) { return torch::matmul(input, weights); }

  torch::Tensor weights;
};

ServerMemories memories_of(const std::string& consistency) {
  Job job;
  job.strategy.kind = "parameter-server";
  job.strategy.consistency = consistency;
  job.cluster.workers = 2;
  job.cluster.servers = 2;
  const auto model = wrap(std::make_shared<SmallNet>());
  return ServerMemories(job, *model);
}

/// A server ended with this ledger.
void leave(std::span<std::byte> memory, std::uint64_t version,
           std::vector<server::LedgerEntry> ledger) {
  server::ShardMemory({.dense = 2}, 0, memory)
      .publish({.version = version, .ledger_generation = 1}, nullptr, ledger);
}

// A worker died between its pushes to the two servers, and no group followed in which they would
// have been compared.
TEST(ServerMemories, TellWhatIsMissingWhereNoGroupFollows) {
  ServerMemories memories = memories_of("async");
  EXPECT_THAT(memories.reports(), IsEmpty());
  leave(memories.spans()[0], 4, {{.settled = 2, .known = 2}, {.settled = 2, .known = 2}});
  leave(memories.spans()[1], 3, {{.settled = 2, .known = 2}, {.settled = 1, .known = 1}});
  for (int times = 0; times < 2; ++times) {
    const auto reports = memories.reports();
    ASSERT_THAT(reports, SizeIs(2));
    EXPECT_EQ(reports[0].counts.missing, 0U);
    EXPECT_EQ(reports[1].counts.missing, 1U);
  }
}

}  // namespace
}  // namespace cohort::training
