#include "chaos/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/fail.h"
#include "chaos/watch/run_watch.h"
#include "checkpoint/safetensors.h"

namespace cohort::chaos {
namespace {

constexpr double kParameterTolerance = 1e-4;
constexpr double kAccuracyTolerance = 0.005;
/// Pieces of a step, one after the other, move a model not quite as far as the whole does at once.
constexpr double kMovementTolerance = 0.02;

/// Of a run that logs every step: one that is logged twice or out of order is wrong, and so are
/// more missing ones than there were losses. Empty where nothing is wrong.
std::string wrong_step_lines(const FinishedRun& run, std::int64_t steps) {
  std::int64_t last = 0;
  std::int64_t missing = 0;
  for (const std::int64_t step : logged_steps(run.run_dir)) {
    if (step <= last) return fmt::format("metrics.jsonl has step {} after step {}", step, last);
    missing += step - last - 1;
    last = step;
  }
  missing += steps - last;
  if (missing <= run.losses) return "";
  return fmt::format("metrics.jsonl lacks {} of {} steps", missing, steps);
}

std::string wrong_movement(double moved, double steps) {
  if (std::abs(moved - steps) <= kMovementTolerance * steps) return "";
  return fmt::format("the model was moved as far as by {:.0f} steps, but {:.0f} were made", moved,
                     steps);
}

/// How many pushes a whole run makes: one for each worker's part of each step. Not known where a
/// push stands for several steps.
std::optional<std::int64_t> pushes_of(const TestedStrategy& strategy,
                                      const nlohmann::json& summary) {
  if (strategy.steps_per_push != 1) return std::nullopt;
  return summary.at("steps").get<std::int64_t>() * summary.at("workers").get<std::int64_t>();
}

/// -1 where the summary does not say, which agrees with no real count.
std::int64_t count_of(const nlohmann::json& shard, const char* field) {
  return shard.value(field, std::int64_t(-1));
}

std::int64_t applied_or_told(const nlohmann::json& shard) {
  return count_of(shard, "applied") + count_of(shard, "missing");
}

}  // namespace

double largest_difference(const std::filesystem::path& one, const std::filesystem::path& other) {
  const checkpoint::SafetensorsFile left = checkpoint::read_safetensors(one);
  const checkpoint::SafetensorsFile right = checkpoint::read_safetensors(other);
  if (left.tensors().size() != right.tensors().size()) {
    fail(ErrorCode::corrupt, "{} has {} tensors and {} has {}", one.string(), left.tensors().size(),
         other.string(), right.tensors().size());
  }
  double largest = 0;
  for (const checkpoint::StoredTensor& tensor : left.tensors()) {
    if (tensor.dtype != checkpoint::SafetensorsDtype::f32) continue;
    const auto values = left.floats(tensor.name);
    const auto others = right.floats(tensor.name);
    if (values.size() != others.size()) {
      fail(ErrorCode::corrupt, "{} has {} values in {} and {} in {}", tensor.name, values.size(),
           one.string(), others.size(), other.string());
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double difference = std::abs(double(values[i]) - double(others[i]));
      // What is not a number is a difference that no other one is larger than.
      if (std::isnan(difference)) return difference;
      largest = std::max(largest, difference);
    }
  }
  return largest;
}

std::vector<std::string> shard_disagreements(const nlohmann::json& summary,
                                             const ExpectedPushes& expected) {
  const auto shards = summary.find("shards");
  if (shards == summary.end() || !shards->is_array() || shards->empty()) {
    return {"summary.json does not say what the servers have counted"};
  }
  std::vector<std::string> found;
  const auto& first = shards->front();
  for (std::size_t i = 0; i < shards->size(); ++i) {
    const auto& shard = (*shards)[i];
    if (count_of(shard, "dropped") != count_of(first, "dropped")) {
      found.push_back(fmt::format("server {} has dropped {} pushes, server 0 {}", i,
                                  count_of(shard, "dropped"), count_of(first, "dropped")));
    }
    if (applied_or_told(shard) != applied_or_told(first)) {
      found.push_back(
          fmt::format("server {} has applied {} pushes and misses {}, server 0 {} and {}", i,
                      count_of(shard, "applied"), count_of(shard, "missing"),
                      count_of(first, "applied"), count_of(first, "missing")));
    }
    if (count_of(shard, "missing") > expected.losses) {
      found.push_back(fmt::format("server {} lacks {} pushes; {} tasks were lost", i,
                                  count_of(shard, "missing"), expected.losses));
    }
    const std::int64_t accounted = applied_or_told(shard) + count_of(shard, "dropped");
    if (expected.count && accounted != *expected.count) {
      found.push_back(fmt::format("server {} accounts for {} pushes; there were {}", i, accounted,
                                  *expected.count));
    }
  }
  return found;
}

std::vector<std::string> differences(const TestedStrategy& strategy, const FinishedRun& quiet,
                                     const FinishedRun& disturbed) {
  std::vector<std::string> found;
  if (!disturbed.summary.is_object()) return {"the run left no summary.json"};
  const auto compare = [&](const char* field) {
    const auto& expected = quiet.summary.at(field);
    const auto& value = disturbed.summary.at(field);
    if (expected != value) {
      found.push_back(
          fmt::format("{} is {}, in the quiet run {}", field, value.dump(), expected.dump()));
    }
  };
  compare("status");
  compare("steps");
  // A run that is not of the same length differs in everything else, too.
  if (!found.empty()) return found;
  if (strategy.traits.loss_stops_all) {
    compare("samples");
    const std::string wrong =
        wrong_step_lines(disturbed, disturbed.summary.at("steps").get<std::int64_t>());
    if (!wrong.empty()) found.push_back(wrong);
  }
  if (!strategy.traits.loss_stops_all && strategy.servers > 0) {
    const ExpectedPushes pushes{.count = pushes_of(strategy, disturbed.summary),
                                .losses = disturbed.losses};
    std::ranges::move(shard_disagreements(disturbed.summary, pushes), std::back_inserter(found));
  }
  if (disturbed.moved_steps) {
    const std::string wrong =
        wrong_movement(*disturbed.moved_steps, disturbed.summary.at("steps").get<double>());
    if (!wrong.empty()) found.push_back(wrong);
  }
  if (strategy.traits.loss_changes_nothing) {
    const double difference = largest_difference(quiet.run_dir / "model.safetensors",
                                                 disturbed.run_dir / "model.safetensors");
    if (!(difference <= kParameterTolerance)) {
      found.push_back(
          fmt::format("parameters differ from the quiet run's by up to {:.3g}", difference));
    }
  }
  const auto& expected = quiet.summary.at("accuracy");
  const auto& accuracy = disturbed.summary.at("accuracy");
  if (expected.is_number() &&
      !(accuracy.is_number() &&
        accuracy.get<double>() >= expected.get<double>() - kAccuracyTolerance)) {
    found.push_back(
        fmt::format("accuracy is {}, in the quiet run {}", accuracy.dump(), expected.dump()));
  }
  return found;
}

}  // namespace cohort::chaos
