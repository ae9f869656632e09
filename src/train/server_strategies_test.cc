// Training with servers, as real runs of processes and threads: what is in step equals one process,
// what is not loses nothing.

#include <gmock/gmock.h>

#include "train/train_test_support.h"

namespace cohort::training {
namespace {

constexpr double kTolerance = 1e-5;

ModelOptions small_mlp() {
  ModelOptions model;
  model.preset = "mlp";
  model.hidden = {24};
  return model;
}

// Statistics over the batch and random numbers could make workers differ.
ModelOptions model_with_batch_norm() {
  ModelOptions model;
  LayerOptions pool, conv, norm, flat, drop, out;
  pool.type = "avgpool";
  pool.kernel = 4;
  conv.type = "conv2d";
  conv.out = 4;
  conv.kernel = 3;
  norm.type = "batchnorm";
  flat.type = "flatten";
  drop.type = "dropout";
  drop.p = 0.3;
  out.type = "linear";
  out.out = 10;
  model.layers = {pool, conv, norm, flat, drop, out};
  return model;
}

Job with_servers(Job job, int workers, int servers, const std::string& engine = "auto") {
  job.strategy.kind = "parameter-server";
  job.cluster.workers = workers;
  job.cluster.servers = servers;
  job.cluster.engine = engine;
  job.cluster.replication = engine == "inproc" ? "in-graph" : "between-graph";
  return job;
}

class EveryEngine : public testing::TestWithParam<const char*> {};

TEST_P(EveryEngine, ASynchronousServerGivesWhatOneProcessGives) {
  const Job job = small_digits_job(model_with_batch_norm());
  static const TrainedModel alone = train_for_test(job);
  for (const int workers : {1, 2, 4}) {
    for (const int servers : {1, 2, 3}) {
      const auto together = train_for_test(with_servers(job, workers, servers, GetParam()));
      EXPECT_LE(distance(alone, together), kTolerance) << workers << " x " << servers;
      EXPECT_NEAR(*together.summary.loss, *alone.summary.loss, kTolerance);
      EXPECT_EQ(together.summary.samples, alone.summary.samples);
      EXPECT_EQ(together.summary.staleness->max, 0);
    }
  }
}

TEST_P(EveryEngine, ASynchronousServerGivesTheSameBytesAgain) {
  const Job job = with_servers(small_digits_job(model_with_batch_norm()), 3, 2, GetParam());
  const auto first = train_for_test(job);
  ASSERT_FALSE(first.file.empty());
  EXPECT_EQ(first.file, train_for_test(job).file);
}

INSTANTIATE_TEST_SUITE_P(Servers, EveryEngine, testing::Values("shm", "gloo", "inproc"));

TEST(Servers, HaveEveryOptimizerAndClipTheWholeGradient) {
  const std::vector<OptimizerOptions> optimizers = {
      {.kind = "sgd", .lr = 0.02, .momentum = 0.9, .weight_decay = 1e-3},
      {.kind = "sgd", .lr = 0.02, .momentum = 0.9, .nesterov = true},
      {.kind = "adam", .lr = 1e-3},
      {.kind = "adamw", .lr = 1e-3},
      {.kind = "adagrad", .lr = 1e-2}};
  for (const OptimizerOptions& optimizer : optimizers) {
    Job job = small_digits_job(small_mlp());
    job.train.optimizer = optimizer;
    job.train.clip_norm = 0.5;
    job.train.accumulate = 2;
    EXPECT_LE(distance(train_for_test(job), train_for_test(with_servers(job, 2, 2))), kTolerance)
        << optimizer.kind;
  }
}

Job plain_sgd_job() {
  Job job = small_digits_job(small_mlp());
  job.train.optimizer.momentum = 0;
  return job;
}

TEST(Averaging, EveryStepEqualsOneProcess) {
  const auto alone = train_for_test(plain_sgd_job());
  for (const int workers : {1, 2, 3, 4}) {
    Job job = with_servers(plain_sgd_job(), workers, 2);
    job.strategy.kind = "averaging";
    job.strategy.every = 1;
    EXPECT_LE(distance(alone, train_for_test(job)), kTolerance) << workers;
    job.strategy = StrategyOptions();
    job.strategy.kind = "parameter-server";
    job.strategy.push = "delta";
    EXPECT_LE(distance(alone, train_for_test(job)), kTolerance) << workers;
  }
}

TEST(Averaging, SendsFewerBytesTheMoreSeldomItIs) {
  const auto bytes_sent = [](std::int64_t every) {
    Job job = with_servers(plain_sgd_job(), 2, 1);
    job.strategy.kind = "averaging";
    job.strategy.every = every;
    job.train.validate = "never";
    return static_cast<double>(train_for_test(job).summary.bytes_sent);
  };
  EXPECT_NEAR(bytes_sent(1) / bytes_sent(10), 10, 1.5);
}

struct Loose {
  const char* name;
  StrategyOptions strategy;
};

StrategyOptions server(const std::string& consistency) {
  StrategyOptions options;
  options.kind = "parameter-server";
  options.consistency = consistency;
  return options;
}

std::vector<Loose> loose_strategies() {
  StrategyOptions quorum = server("k-of-n");
  quorum.quorum = 2;
  quorum.weight = "1/staleness";
  StrategyOptions dropping = quorum;
  dropping.late = "drop";
  StrategyOptions deltas = server("async");
  deltas.push = "delta";
  deltas.local_steps = 3;
  deltas.weight = "(1+staleness)^-a";
  StrategyOptions partial;
  partial.kind = "averaging";
  partial.mode = "partial";
  partial.quorum = 2;
  partial.every = 5;
  partial.outer = {.kind = "nesterov", .lr = 0.7, .momentum = 0.5};
  StrategyOptions gossip;
  gossip.kind = "gossip";
  StrategyOptions gradients = gossip;
  gradients.send = "gradients";
  StrategyOptions compressed = server("async");
  compressed.compression.kind = "int8";
  return {{"async", server("async")}, {"bounded", server("bounded")},
          {"quorum", quorum},         {"dropping", dropping},
          {"deltas", deltas},         {"partial", partial},
          {"gossip", gossip},         {"gradients", gradients},
          {"compressed", compressed}};
}

class EveryLooseStrategy : public testing::TestWithParam<Loose> {};

TEST_P(EveryLooseStrategy, SeesEverySampleOnceAndLearns) {
  for (const char* engine : {"shm", "gloo", "inproc"}) {
    Job job = small_digits_job(model_with_batch_norm());
    job.data.samples = 800;
    job.train.steps = 0;
    job.train.epochs = 4;
    job.train.validate = "epoch";
    job.train.optimizer.momentum = 0.5;
    job.strategy = GetParam().strategy;
    job.cluster.workers = 3;
    job.cluster.engine = engine;
    job.cluster.replication = std::string(engine) == "inproc" ? "in-graph" : "between-graph";
    const auto run = train_for_test(job);
    EXPECT_EQ(run.summary.samples, 4 * 720) << engine;
    EXPECT_EQ(run.summary.steps, 4 * 45);
    EXPECT_LT(*run.summary.loss, 2.0) << "it starts at 2.3";
    std::int64_t own_steps = 0;
    for (const TaskSummary& task : run.summary.tasks) own_steps += task.steps.value_or(0);
    EXPECT_EQ(own_steps, 3 * 4 * 45);
    if (job.strategy.kind == "gossip") continue;
    const StalenessSummary& staleness = *run.summary.staleness;
    std::int64_t counted = 0;
    for (const auto& [value, pushes] : staleness.histogram) counted += pushes;
    EXPECT_EQ(counted, staleness.applied + staleness.dropped);
    EXPECT_EQ(staleness.missing, 0);
    if (job.strategy.push == "gradient" && job.strategy.kind == "parameter-server") {
      EXPECT_EQ(counted, own_steps) << "no push is lost or applied twice";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, EveryLooseStrategy, testing::ValuesIn(loose_strategies()),
                         [](const auto& test) { return test.param.name; });

// What travels in the steps between the 5th and the 15th.
std::int64_t bytes_of_ten_steps(std::int64_t vocabulary, std::int64_t batch) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 4000; ++i) text += static_cast<char>('a' + (i * i + i / 7) % 23);
  write_file_atomically(folder.path() / "text.txt", text);
  Job job = small_digits_job({});
  LayerOptions embedding, out;
  embedding.type = "embedding";
  embedding.out = 32;
  embedding.vocabulary = vocabulary;
  embedding.sparse = true;
  out.type = "linear";
  out.out = 23;
  job.model.layers = {embedding, out};
  job.data.kind = "text";
  job.data.path = (folder.path() / "text.txt").string();
  job.data.context = 4;
  job.train.batch = batch;
  job.train.optimizer = {.kind = "sgd", .lr = 0.1};
  job.train.validate = "never";
  const auto bytes = [&](std::int64_t steps) {
    job.train.steps = steps;
    const Summary summary = train_for_test(with_servers(job, 2, 2)).summary;
    return summary.bytes_sent + summary.bytes_received;
  };
  return bytes(15) - bytes(5);
}

TEST(SparseRows, TravelInProportionToTheBatchNotTheTable) {
  const std::int64_t small = bytes_of_ten_steps(1000, 8);
  EXPECT_EQ(bytes_of_ten_steps(1000000, 8), small);
  // Ten steps, two workers, at most 16 tokens each: rows there and back, and the small rest.
  EXPECT_LT(small, 10 * 2 * (2 * 16 * 33 * 4 + 2 * 4 * (32 * 23 + 64) + 2000));
  EXPECT_GT(small, 10 * 2 * 32 * 4);
}

TEST(SparseRows, GiveWhatADenseTableGives) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 1700; ++i) text += static_cast<char>('a' + (i * i + i / 7) % 23);
  write_file_atomically(folder.path() / "text.txt", text);
  Job job = small_digits_job({});
  LayerOptions embedding, out;
  embedding.type = "embedding";
  embedding.out = 8;
  embedding.positions = true;
  out.type = "linear";
  out.out = 23;
  job.model.layers = {embedding, out};
  job.data.kind = "text";
  job.data.path = (folder.path() / "text.txt").string();
  job.data.context = 16;
  job.train.optimizer = {.kind = "sgd", .lr = 0.1};
  const auto dense = train_for_test(job);
  job.model.layers[0].sparse = true;
  for (const char* engine : {"shm", "gloo"}) {
    EXPECT_LE(distance(dense, train_for_test(with_servers(job, 2, 3, engine))), kTolerance);
  }
  job.cluster.workers = 2;
  EXPECT_LE(distance(dense, train_for_test(job)), kTolerance) << "all-reduce takes it as dense";
}

}  // namespace
}  // namespace cohort::training
