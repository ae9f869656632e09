// A summary as JSON and back, and in words. A run's caller knows no more of it than what is written
// here, so every field must come through.

#include "train/run/summary_text.h"

#include <cohort/error.h>
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace cohort::training {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

/// Of a run with servers, in which everything has happened.
Summary eventful_summary() {
  Summary summary;
  summary.status = "completed";
  summary.strategy = "parameter-server";
  summary.engine = "shm";
  summary.workers = 2;
  summary.servers = 1;
  summary.steps = 120;
  summary.epochs = 1.5;
  summary.samples = 960;
  summary.seconds = 3;
  summary.samples_per_second = 320;
  summary.loss = 0.25;
  summary.accuracy = 0.5;
  summary.bytes_sent = 7;
  summary.bytes_received = 8;
  summary.restarts = 1;
  summary.failures = {"worker 1 was killed"};
  summary.staleness = {.mean = 1.5, .max = 3, .histogram = {{0, 10}, {3, 2}}, .applied = 12};
  summary.shards = {{.server = 0, .version = 12, .applied = 12, .fingerprint = 0xfedcba9876543210}};
  summary.phase_seconds = {{"forward", 0.75}};
  summary.tasks = {{.role = "chief",
                    .rank = 0,
                    .host = "here",
                    .pid = 42,
                    .peak_rss_bytes = 1 << 20,
                    .steps = 120,
                    .step_seconds = 0.02,
                    .wait_seconds = 0.5}};
  TaskSummary& server = summary.tasks.emplace_back();
  server.role = "server";
  server.pid = 43;
  return summary;
}

TEST(SummaryText, ComesBackFromJsonAsItWas) {
  const Summary before = eventful_summary();
  const Summary after = summary_from_json(to_json(before), "a test");
  EXPECT_EQ(to_json(after), to_json(before));
  EXPECT_EQ(after.steps, 120);
  EXPECT_EQ(after.accuracy, 0.5);
  EXPECT_EQ(after.staleness->histogram, before.staleness->histogram);
  ASSERT_THAT(after.shards, SizeIs(1));
  EXPECT_EQ(after.shards[0].fingerprint, 0xfedcba9876543210);
  ASSERT_THAT(after.tasks, SizeIs(2));
  EXPECT_EQ(after.tasks[0].step_seconds, 0.02);
  EXPECT_EQ(after.tasks[1].steps, std::nullopt);
}

TEST(SummaryText, WhatThereIsNotIsNull) {
  const auto json = nlohmann::json::parse(to_json(Summary()));
  for (const char* key : {"samples_per_second", "loss", "accuracy", "staleness", "shards"}) {
    EXPECT_TRUE(json.at(key).is_null()) << key;
  }
  EXPECT_FALSE(json.contains("run_dir"));
  const Summary after = summary_from_json(to_json(Summary()), "a test");
  EXPECT_EQ(after.loss, std::nullopt);
  EXPECT_FALSE(after.staleness);
  EXPECT_THAT(after.shards, IsEmpty());
}

TEST(SummaryText, WhatIsNoSummaryIsRefusedByName) {
  for (const char* text : {"", "[]", "{\"status\": 1}", "{\"status\": \"completed\"}"}) {
    try {
      summary_from_json(text, "some/summary.json");
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::corrupt);
      EXPECT_THAT(error.what(), HasSubstr("some/summary.json is not the summary of a run"));
    }
  }
}

TEST(SummaryText, AFailureThatIsNotUtf8IsWrittenAllTheSame) {
  Summary summary;
  summary.failures = {"cannot open \xff.csv"};
  EXPECT_EQ(summary_from_json(to_json(summary), "a test").failures[0],
            "cannot open \xef\xbf\xbd.csv");
}

TEST(SummaryText, InWordsNamesSpeedWorkersAndFolder) {
  Summary summary = eventful_summary();
  summary.run_dir = "runs/one";
  EXPECT_EQ(closing_line(summary),
            "completed: 120 steps, 1.50 epochs in 3.0 s, 320 samples/s, validation loss 0.2500, "
            "accuracy 50.00 %\n"
            "worker 0: 120 steps, 20.0 ms each, waited 0.5 s\n"
            "run folder: runs/one");
  summary.workers = 1;
  EXPECT_THAT(closing_line(summary), Not(HasSubstr("worker 0")));
}

}  // namespace
}  // namespace cohort::training
