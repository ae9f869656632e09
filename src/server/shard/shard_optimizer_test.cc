// In lockstep any number of shards and workers make the same model as one process with all
// gradients, bit for bit, with every optimizer.

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "optimizer/optimizer.h"
#include "server/shard/shard_test_support.h"
#include "server/wire/shard_shape.h"

namespace cohort::server {
namespace {

constexpr std::size_t kDense = 20000;
constexpr int kSteps = 5;

struct OptimizerCase {
  std::string name;
  OptimizerOptions options;
};

void PrintTo(const OptimizerCase& one, std::ostream* out) {
  *out << one.name;
}

/// One process that has all gradients.
struct OneProcess {
  OneProcess(const OptimizerOptions& options, std::vector<float> first_model)
      : rule(optimizer::make_optimizer(options)),
        parameters(std::move(first_model)),
        slots(rule->slots().size(), std::vector<float>(parameters.size())) {}

  void step(const std::vector<std::vector<float>>& gradients,
            const optimizer::UpdateScalars& scalars) {
    std::vector<float> sum = gradients.front();
    for (std::size_t worker = 1; worker < gradients.size(); ++worker) {
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += gradients[worker][i];
    }
    std::vector<std::span<float>> spans(slots.begin(), slots.end());
    rule->update(parameters, sum, spans, scalars);
  }

  std::unique_ptr<optimizer::Optimizer> rule;
  std::vector<float> parameters;
  std::vector<std::vector<float>> slots;
};

/// Shards that together have the model, and its workers in lockstep.
class Servers {
 public:
  Servers(const OptimizerOptions& options, int workers, int servers,
          const std::vector<float>& first_model)
      : workers_(workers) {
    ShardRules rules = rules_of(ShardRules::Consistency::sync, workers);
    rules.optimizer = options;
    for (int server = 0; server < servers; ++server) {
      parts_.push_back(dense_part(kDense, servers, server));
      const ShardPart part = parts_.back();
      shards_.push_back(std::make_unique<Shard>(rules, ShardShape{.dense = part.end - part.begin}));
      initialise(*shards_.back(), std::span(first_model).subspan(part.begin, part.end - part.begin),
                 {});
    }
  }

  /// All workers push in a random order; returns what worker 0 pulls.
  std::vector<float> step(const std::vector<std::vector<float>>& gradients,
                          const optimizer::UpdateScalars& scalars, Random& random) {
    std::vector<float> model;
    for (std::size_t server = 0; server < shards_.size(); ++server) {
      const ShardPart part = parts_[server];
      std::vector<std::unique_ptr<Call>> calls;
      for (const int worker : random_order(random)) {
        const auto& own = gradients[static_cast<std::size_t>(worker)];
        const auto step = static_cast<std::uint64_t>(scalars.step);
        RequestHeader header = push_and_pull(worker, step, step - 1);
        header.lr = scalars.lr;
        calls.push_back(std::make_unique<Call>(
            header, std::vector<float>(own.begin() + static_cast<std::ptrdiff_t>(part.begin),
                                       own.begin() + static_cast<std::ptrdiff_t>(part.end))));
        calls.back()->submit(*shards_[server]);
      }
      for (const auto& call : calls) EXPECT_EQ(call->pulled, calls.front()->pulled);
      model.insert(model.end(), calls.front()->pulled.begin(), calls.front()->pulled.end());
    }
    return model;
  }

 private:
  std::vector<int> random_order(Random& random) const {
    std::vector<int> order;
    for (int worker = 0; worker < workers_; ++worker) {
      order.insert(order.begin() + static_cast<std::ptrdiff_t>(random.below(order.size() + 1)),
                   worker);
    }
    return order;
  }

  int workers_;
  std::vector<ShardPart> parts_;
  std::vector<std::unique_ptr<Shard>> shards_;
};

class SyncShards : public ::testing::TestWithParam<OptimizerCase> {};

TEST_P(SyncShards, EqualOneProcessBitForBit) {
  for (const int workers : {1, 2, 4}) {
    for (const int servers : {1, 2, 3}) {
      SCOPED_TRACE(std::to_string(workers) + " workers, " + std::to_string(servers) + " servers");
      Random random(5);
      const std::vector<float> first_model = random_floats(kDense, random);
      OneProcess one(GetParam().options, first_model);
      Servers many(GetParam().options, workers, servers, first_model);
      for (int step = 1; step <= kSteps; ++step) {
        std::vector<std::vector<float>> gradients;
        for (int worker = 0; worker < workers; ++worker) {
          gradients.push_back(random_floats(kDense, random));
        }
        const optimizer::UpdateScalars scalars{.lr = 0.1 / step, .step = step};
        one.step(gradients, scalars);
        ASSERT_EQ(many.step(gradients, scalars, random), one.parameters) << "step " << step;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Optimizers, SyncShards,
    ::testing::Values(OptimizerCase{"sgd", {.kind = "sgd", .weight_decay = 0.01}},
                      OptimizerCase{"momentum", {.kind = "sgd", .momentum = 0.9}},
                      OptimizerCase{"nesterov", {.kind = "sgd", .momentum = 0.9, .nesterov = true}},
                      OptimizerCase{"adam", {.kind = "adam", .weight_decay = 0.01}},
                      OptimizerCase{"adamw", {.kind = "adamw", .weight_decay = 0.01}},
                      OptimizerCase{"adagrad", {.kind = "adagrad", .weight_decay = 0.1}}),
    [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace cohort::server
