// What workers of other launchers report comes as it was sent; what cannot be a report is refused.

#include "train/run/worker_report.h"

#include <gmock/gmock.h>

#include "base/json.h"

namespace cohort::training {
namespace {

launch::WorkerResult sample_result() {
  launch::WorkerResult result;
  result.steps = 7;
  result.samples = 448;
  result.samples_per_second = 12.5;
  result.own_steps = 6;
  result.bytes_sent = 1 << 20;
  result.phase_seconds[2] = 0.25;
  result.task.pid = 42;
  launch::put_text(result.task.host, "host-1");
  return result;
}

TEST(WorkerReport, ComesAsItWasSent) {
  const launch::WorkerResult sent = sample_result();
  const launch::WorkerResult found = worker_result_from(to_text(sent));
  EXPECT_EQ(to_text(found), to_text(sent));
  EXPECT_EQ(found.samples, 448);
  EXPECT_EQ(found.phase_seconds[2], 0.25);
  EXPECT_STREQ(found.task.host.data(), "host-1");
}

TEST(WorkerReport, WhatCannotBeOneIsRefused) {
  EXPECT_THROW(worker_result_from(""), Error);
  EXPECT_THROW(worker_result_from("[]"), Error);
  const auto with = [](const char* key, const nlohmann::json& value) {
    auto json = parse_json(to_text(sample_result()));
    json[key] = value;
    return json.dump();
  };
  const std::pair<const char*, nlohmann::json> wrongs[] = {
      {"samples", -1}, {"samples", INT64_MAX},    {"samples", 1e300},       {"bytes_sent", "many"},
      {"host", 7},     {"phase_seconds", {1, 2}}, {"step_seconds", nullptr}};
  for (const auto& [key, value] : wrongs) {
    EXPECT_THAT([&] { worker_result_from(with(key, value)); },
                ::testing::ThrowsMessage<Error>(::testing::HasSubstr(key)))
        << value;
  }
}

TEST(WorkerReport, AHostOfAnyLengthIsCut) {
  auto json = parse_json(to_text(sample_result()));
  json["host"] = std::string(10000, 'h');
  const launch::WorkerResult found = worker_result_from(json.dump());
  EXPECT_EQ(std::string(found.task.host.data()).size(), found.task.host.size() - 1);
}

}  // namespace
}  // namespace cohort::training
