#include "job/job_file.h"

#include <cohort/model.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/files.h"
#include "compression/codec.h"
#include "job/check_job.h"
#include "job/key_table.h"
#include "kinds/strategy_table.h"
#include "optimizer/learning_rate.h"
#include "optimizer/optimizer.h"

/// Reading, writing, and reading again what was written; and that the table of keys, the examples
/// and docs/job.md agree with each other.

namespace cohort::job {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::filesystem::path kSource = COHORT_SOURCE_DIR;

Job load_text(const std::string& content, const std::vector<std::string>& overrides = {}) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "job.toml";
  write_file_atomically(file, content);
  return load_job(file, overrides);
}

TEST(JobFile, EmptyFileIsTheDefaultJob) {
  const Job job = load_text("");
  EXPECT_EQ(job.name, "job");
  EXPECT_EQ(job.train.batch, 128);
  EXPECT_EQ(job.train.optimizer.lr, 0.1);
  EXPECT_EQ(to_toml(job), to_toml(Job()));
}

TEST(JobFile, ReadsEverySection) {
  const Job job = load_text(R"(
[job]
name = "seven"
seed = 7
[model]
preset = "mlp"
hidden = [64, 32]
[data]
kind = "generated"
task = "blobs"
header = false
[train]
steps = 12
optimizer = { kind = "adam", lr = 1, beta2 = 0.99 }
schedule = { kind = "cosine", warmup_steps = 3 }
[strategy]
algorithm = "ring"
[cluster]
workers = 3
pin = false
[log]
every_steps = 2
[checkpoint]
keep = 5
)");
  EXPECT_EQ(job.name, "seven");
  EXPECT_EQ(job.seed, 7u);
  EXPECT_THAT(job.model.hidden, ElementsAre(64, 32));
  EXPECT_EQ(job.data.task, "blobs");
  EXPECT_FALSE(job.data.header);
  EXPECT_EQ(job.train.steps, 12);
  EXPECT_EQ(job.train.optimizer.kind, "adam");
  EXPECT_EQ(job.train.optimizer.lr, 1.0);
  EXPECT_EQ(job.train.optimizer.beta2, 0.99);
  EXPECT_EQ(job.train.schedule.warmup_steps, 3);
  EXPECT_EQ(job.strategy.algorithm, "ring");
  EXPECT_EQ(job.cluster.workers, 3);
  EXPECT_FALSE(job.cluster.pin);
  EXPECT_EQ(job.log.every_steps, 2);
  EXPECT_EQ(job.checkpoint.keep, 5);
}

TEST(JobFile, ReadsLayersAndBranches) {
  const Job job = load_text(R"(
[model]
layers = [
  { type = "conv2d", out = 8, kernel = 3, padding = 1, bias = false },
  { type = "residual", layers = [ { type = "relu" }, { type = "dropout", p = 0 } ] },
]
)");
  ASSERT_EQ(job.model.layers.size(), 2u);
  EXPECT_EQ(job.model.layers[0].type, "conv2d");
  EXPECT_EQ(job.model.layers[0].kernel, 3);
  EXPECT_FALSE(job.model.layers[0].bias);
  ASSERT_EQ(job.model.layers[1].layers.size(), 2u);
  EXPECT_EQ(job.model.layers[1].layers[1].type, "dropout");
  EXPECT_EQ(job.model.layers[1].layers[1].p, 0.0);
  EXPECT_FALSE(job.model.layers[1].layers[0].p.has_value());
}

TEST(JobFile, OverridesComeAfterTheFileInTheirOrder) {
  const Job job =
      load_text("[train]\nsteps = 5\nbatch = 16\n[job]\nname = \"a\"\n",
                {"train.steps=100", "train.optimizer.lr=0.01", "strategy.algorithm=ring",
                 "model.hidden=[64,32]", "job.name=7", "data.path=some/folder", "log.trace=true",
                 "train.steps=200", "train.schedule={kind=\"cosine\", warmup_steps=4}",
                 "model.torchscript=\"a b.pt\""});
  EXPECT_EQ(job.train.steps, 200);
  EXPECT_EQ(job.train.batch, 16);
  EXPECT_EQ(job.train.optimizer.lr, 0.01);
  EXPECT_EQ(job.strategy.algorithm, "ring");
  EXPECT_THAT(job.model.hidden, ElementsAre(64, 32));
  EXPECT_EQ(job.name, "7");
  EXPECT_EQ(job.data.path, "some/folder");
  EXPECT_TRUE(job.log.trace);
  EXPECT_EQ(job.train.schedule.kind, "cosine");
  EXPECT_EQ(job.train.schedule.warmup_steps, 4);
  EXPECT_EQ(job.model.torchscript, "a b.pt");
}

TEST(JobFile, OverrideCannotSmuggleASecondKey) {
  EXPECT_EQ(load_text("", {"data.path=x\nvalue2 = 1"}).data.path, "x\nvalue2 = 1");
}

/// Another legal value than the default, for every type of key.
struct Change {
  const Limits& limits;
  void operator()(std::string& value) const {
    const std::string before = value;
    value = "a \"quoted\" \\ word, \xc3\xa9";
    if (!limits.plain_name) value += "\nand a line";
    if (limits.choices.empty()) return;
    value = limits.choices.back() == before ? limits.choices.front() : limits.choices.back();
  }
  void operator()(std::int64_t& value) const {
    value = static_cast<std::int64_t>(std::min(static_cast<double>(value) + 3, limits.most));
  }
  void operator()(std::uint64_t& value) const { value = 0xfedcba9876543210u; }
  void operator()(double& value) const { value = value * 0.3 + 1e-7; }
  void operator()(std::optional<double>& value) const { value = 1.0 / 3; }
  void operator()(std::optional<bool>& value) const { value = true; }
  void operator()(bool& value) const { value = !value; }
  void operator()(std::vector<std::int64_t>& value) const { value = {5, 1}; }
  void operator()(std::vector<LayerOptions>& value) const {
    LayerOptions conv, dropout, branch, relu;
    conv.type = "conv2d";
    conv.out = 4;
    conv.kernel = 3;
    conv.bias = false;
    dropout.type = "dropout";
    dropout.p = 0.1;
    branch.type = "residual";
    branch.layers = {conv, dropout};
    relu.type = "relu";
    value = {branch, relu, branch};
  }
};

TEST(JobFile, EveryKeySurvivesTheRoundTrip) {
  Job job;
  for (const Key<Job>& key : job_keys()) {
    std::visit([&](auto get) { Change{key.limits}(get(job)); }, key.field);
  }
  const Job back = load_text(to_toml(job));
  for (const Key<Job>& key : job_keys()) {
    std::visit(
        [&](auto get) {
          if constexpr (!std::is_same_v<decltype(get), std::vector<LayerOptions>& (*)(Job&)>) {
            EXPECT_EQ(value_of(get, back), value_of(get, job)) << key.path;
            if (key.limits.choices.size() != 1) {
              EXPECT_NE(value_of(get, back), value_of(get, Job())) << key.path;
            }
          }
        },
        key.field);
  }
  ASSERT_EQ(back.model.layers.size(), 3u);
  EXPECT_EQ(back.model.layers[2].layers[0].kernel, 3);
  EXPECT_FALSE(back.model.layers[2].layers[0].bias);
  EXPECT_EQ(back.model.layers[2].layers[1].p, 0.1);
  EXPECT_EQ(to_toml(back), to_toml(job));
}

TEST(JobFile, WritesOptimizerAndScheduleAsInlineTables) {
  const std::string text = to_toml(Job());
  EXPECT_THAT(text, HasSubstr("\noptimizer = { kind = \"sgd\", lr = 0.1, "));
  EXPECT_THAT(text, HasSubstr("\nschedule = { kind = \"constant\", "));
  EXPECT_THAT(text, HasSubstr("[job]\nname = "));
  EXPECT_THAT(text, Not(HasSubstr("preset")));
}

TEST(JobFile, SaysWhatOnlyAProgramCanSet) {
  Job job;
  job.model.make = [] { return nullptr; };
  const std::string text = to_toml(job);
  EXPECT_THAT(text, HasSubstr("# The model is the program's own."));
  EXPECT_EQ(to_toml(load_text(text)), to_toml(Job()));
}

TEST(Examples, AllLoadAndCheck) {
  int seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kSource / "examples")) {
    if (entry.path().extension() != ".toml") continue;
    ++seen;
    EXPECT_NO_THROW({
      const Job job = load_job(entry.path());
      check_job(job);
      EXPECT_EQ(to_toml(load_text(to_toml(job))), to_toml(job));
      const bool has_file = job.data.kind == "csv" || job.data.kind == "text";
      EXPECT_TRUE(!has_file || std::filesystem::exists(kSource / job.data.path)) << entry.path();
    }) << entry.path();
  }
  EXPECT_GE(seen, 8);
}

/// Which of a row's keys are no keys of a job.
template <class Rows>
std::vector<std::string> unknown_keys(const std::string& section, const Rows& rows) {
  std::vector<std::string> unknown;
  for (const auto& row : rows) {
    for (const std::string& key : row.keys) {
      if (std::ranges::find(job_keys(), section + key, &Key<Job>::path) == job_keys().end()) {
        unknown.push_back(section + key);
      }
    }
  }
  return unknown;
}

TEST(Tables, NameOnlyKeysThatAJobHas) {
  EXPECT_THAT(unknown_keys("strategy.", kinds::strategy_ways()), IsEmpty());
  EXPECT_THAT(unknown_keys("strategy.compression.", compression::codec_table()), IsEmpty());
  EXPECT_THAT(unknown_keys("train.optimizer.", optimizer::optimizer_table()), IsEmpty());
  EXPECT_THAT(unknown_keys("train.schedule.", optimizer::schedule_table()), IsEmpty());
}

// A key of [strategy] that no row reads would be refused by nobody.
TEST(Tables, EveryKeyOfAStrategyIsReadBySomeRow) {
  for (const Key<Job>& key : job_keys()) {
    if (!key.path.starts_with("strategy.") || key.path == "strategy.kind" ||
        key.path.starts_with("strategy.compression.")) {
      continue;
    }
    EXPECT_FALSE(kinds::kinds_that_read(key.path.substr(std::string("strategy.").size())).empty())
        << key.path;
  }
}

TEST(Docs, HaveEveryKeyAsTheTableHasIt) {
  EXPECT_THAT(read_file(kSource / "docs" / "job.md"), HasSubstr(key_reference()))
      << "docs/job.md must contain the output of: cohort train --keys";
}

}  // namespace
}  // namespace cohort::job
