#pragma once

// The same small training in every mode, as scripts that can go on from any version: for tests
// that end a shard somewhere and want the floats of one that was never ended.

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/shard/shard_test_support.h"
#include "server/wire/shard_shape.h"

namespace cohort::server {

// One server then has three pieces of dense floats.
inline const ModelSize kModel{.dense = 40000, .tables = {{.rows = 60, .width = 3}}};
constexpr std::uint64_t kUpdates = 6;

/// Where a script stands, as far as the model says.
struct Place {
  std::uint64_t version = 0;
  std::uint64_t kept = 0;
};

/// Sends what comes next after `place`, until something was committed.
using Script = std::function<void(Shard& shard, const Place& place)>;

struct Mode {
  std::string name;
  ShardRules rules;
  Script script;
};

inline void PrintTo(const Mode& mode, std::ostream* out) {
  *out << mode.name;
}

inline std::unique_ptr<Call> push(Shard& shard, RequestHeader header, std::uint64_t seed) {
  Random random(seed);
  header.lr = 0.1;
  auto call = std::make_unique<Call>(header, random_floats(shard.dense().size(), random));
  const TableShape table = shard.shape().tables.front();
  OwnRows rows;
  for (std::uint32_t row = table.first_row; row < table.end_row; ++row) {
    if (random.below(2) == 0) rows.rows.push_back(row);
  }
  rows.values = random_floats(rows.rows.size() * table.width, random);
  call->rows = {rows};
  call->submit(shard);
  return call;
}

/// Every shard's object lives for one version, so a worker's first push there is its number 1.
inline RequestHeader first_push(int worker, std::uint64_t version) {
  return push_and_pull(worker, 1, version);
}

inline void sync_script(Shard& shard, const Place& place) {
  const auto one = push(shard, first_push(1, place.version), 10 * place.version + 1);
  const auto two = push(shard, first_push(0, place.version), 10 * place.version + 2);
  EXPECT_TRUE(one->reply && two->reply);
}

inline void held_script(Shard& shard, const Place& place) {
  std::vector<std::unique_ptr<Call>> calls;
  for (const int worker : {0, 1}) {
    RequestHeader header = first_push(worker, place.version);
    header.hold = true;
    header.pull = false;
    calls.push_back(push(shard, header, 10 * place.version + static_cast<unsigned>(worker)));
  }
  for (const int worker : {0, 1}) {
    RequestHeader header = pull_by(worker);
    header.version = place.version;
    header.apply = true;
    header.scale = 0.5;
    header.lr = 0.2;
    calls.push_back(std::make_unique<Call>(header));
    calls.back()->submit(shard);
  }
  for (const auto& call : calls) EXPECT_TRUE(call->reply);
}

inline void async_script(Shard& shard, const Place& place) {
  const int worker = static_cast<int>(place.version % 2);
  const auto call = push(shard, first_push(worker, place.version), place.version);
  EXPECT_TRUE(call->reply && call->reply->applied);
}

/// Three of four make an update; then two are late and kept for the next, which they make with one
/// more.
inline void quorum_script(Shard& shard, const Place& place) {
  const std::uint64_t seed = 10 * place.version + place.kept;
  if (place.version % 2 == 1 && place.kept < 2) {
    const int worker = place.kept == 0 ? 3 : 2;
    const auto late = push(shard, first_push(worker, place.version - 1), seed);
    EXPECT_TRUE(late->reply && late->reply->applied);
    return;
  }
  std::vector<std::unique_ptr<Call>> calls;
  for (int worker = 0; worker < (place.kept == 0 ? 3 : 1); ++worker) {
    calls.push_back(push(shard, first_push(worker, place.version), seed + 3));
  }
  for (const auto& call : calls) EXPECT_TRUE(call->reply);
}

inline ShardRules rules_for(ShardRules::Consistency consistency, int workers,
                            const OptimizerOptions& optimizer) {
  ShardRules rules = rules_of(consistency, workers);
  rules.quorum = 3;
  rules.optimizer = optimizer;
  return rules;
}

inline std::vector<Mode> modes() {
  const OptimizerOptions momentum{.kind = "sgd", .momentum = 0.5};
  const OptimizerOptions adam{.kind = "adam"};
  ShardRules deltas = rules_for(ShardRules::Consistency::sync, 2, momentum);
  deltas.deltas = true;
  return {
      {"sync", rules_for(ShardRules::Consistency::sync, 2, adam), sync_script},
      {"sync_deltas", deltas, sync_script},
      {"sync_held", rules_for(ShardRules::Consistency::sync, 2, momentum), held_script},
      {"async", rules_for(ShardRules::Consistency::async, 2, adam), async_script},
      {"async_plain", rules_for(ShardRules::Consistency::async, 2, {.kind = "sgd"}), async_script},
      {"quorum", rules_for(ShardRules::Consistency::quorum, 4, momentum), quorum_script}};
}

}  // namespace cohort::server
