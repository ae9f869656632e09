#pragma once

// Requests with memory of their own, and small shards to submit them to.

#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

#include "base/random.h"
#include "server/shard/shard.h"

namespace cohort::server {

/// Rows of a table with memory of their own.
struct OwnRows {
  std::uint32_t table = 0;
  std::vector<std::uint32_t> rows = {};
  std::vector<float> values = {};
};

/// One request with the memory it refers to, and what came of it.
struct Call {
  explicit Call(const RequestHeader& header_, std::vector<float> dense_ = {})
      : header(header_), dense(std::move(dense_)) {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  /// Where `pull_into` says nothing else it has the shard's size.
  void submit(Shard& shard) {
    if (header.pull && pulled.empty()) pulled.resize(shard.dense().size());
    Request request;
    request.header = header;
    request.dense = dense;
    request.encoded = encoded;
    for (const OwnRows& r : rows) request.rows.push_back({r.table, r.rows, r.values});
    request.pull_into = pulled;
    if (want_message) request.pull_encoded = &message;
    for (OwnRows& r : wanted) request.rows_wanted.push_back({r.table, r.rows, r.values});
    request.answer = [this](const ReplyHeader& answered) {
      EXPECT_FALSE(reply || error) << "answered twice";
      reply = answered;
    };
    request.refuse = [this](const Error& refused) {
      EXPECT_FALSE(reply || error) << "answered twice";
      error = refused;
    };
    shard.submit(std::move(request));
  }

  bool waits() const { return !reply && !error; }

  RequestHeader header;
  std::vector<float> dense;
  std::vector<std::byte> encoded = {};
  std::vector<OwnRows> rows = {};
  std::vector<float> pulled = {};
  bool want_message = false;
  std::vector<std::byte> message = {};
  std::vector<OwnRows> wanted = {};
  std::optional<ReplyHeader> reply = {};
  std::optional<Error> error = {};
};

inline RequestHeader push_and_pull(int worker, std::uint64_t sequence, std::uint64_t version = 0) {
  RequestHeader header;
  header.worker = worker;
  header.push = true;
  header.pull = true;
  header.sequence = sequence;
  header.version = version;
  header.lr = 1;
  return header;
}

inline RequestHeader pull_by(int worker) {
  RequestHeader header;
  header.worker = worker;
  header.pull = true;
  return header;
}

inline RequestHeader finished_by(int worker) {
  RequestHeader header;
  header.worker = worker;
  header.finished = true;
  return header;
}

/// Rules of plain SGD.
inline ShardRules rules_of(ShardRules::Consistency consistency, int workers) {
  ShardRules rules;
  rules.workers = workers;
  rules.parts = workers;
  rules.consistency = consistency;
  return rules;
}

/// The first model, without slots.
inline void initialise(Shard& shard, std::span<const float> dense,
                       const std::vector<std::vector<float>>& tables = {}) {
  std::vector<float> floats(dense.begin(), dense.end());
  ModelMessage model;
  for (const auto& table : tables) floats.insert(floats.end(), table.begin(), table.end());
  model.shape.tables.resize(tables.size());
  model.floats = floats;
  shard.initialise(model);
}

/// A shard of two floats, 0 and 10 at first.
struct TwoFloats {
  explicit TwoFloats(const ShardRules& rules) : shard(rules, {.dense = 2}) {
    initialise(shard, std::vector<float>{0, 10}, {});
  }
  Shard shard;
};

inline std::vector<float> random_floats(std::size_t count, Random& random) {
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(random.normal());
  return values;
}

}  // namespace cohort::server
