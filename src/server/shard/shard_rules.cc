#include "server/shard/shard_rules.h"

#include <cmath>
#include <vector>

#include "base/fail.h"
#include "server/wire/wire.h"

namespace cohort::server {
namespace {

/// A rate that no step of the job has, or a scale that is no clipping, would move the model as far as
/// a worker likes.
void check_sizes_of_update(const RequestHeader& header, const ShardRules& rules) {
  const bool updates = header.push || header.apply;
  if (updates && !rules.deltas && (header.lr < 0 || header.lr > rules.most_lr)) {
    fail(ErrorCode::invalid, "worker {} sent a learning rate of {}; this job's are 0 to {}",
         header.worker, header.lr, rules.most_lr);
  }
  if (header.apply && (header.scale < 0 || header.scale > 1)) {
    fail(ErrorCode::invalid, "worker {} sent a scale of {}; gradients are clipped by 0 to 1",
         header.worker, header.scale);
  }
}

/// Flags that contradict each other or the rules.
void check_exchange(const RequestHeader& header, const ShardRules& rules) {
  const int worker = header.worker;
  if (header.push && header.sequence == 0) {
    fail(ErrorCode::invalid, "worker {} pushed without a sequence number; the first is 1", worker);
  }
  const bool sync = rules.consistency == ShardRules::Consistency::sync;
  if ((header.hold || header.apply) && !sync) {
    fail(ErrorCode::invalid, "worker {} asked to hold or apply; only sync updates can be held",
         worker);
  }
  if (header.is_again() && (sync || !header.push)) {
    fail(ErrorCode::invalid,
         "worker {} makes something again that is no push, or a push of sync, which is undone",
         worker);
  }
  if (header.hold && !header.push) {
    fail(ErrorCode::invalid, "worker {} asked to hold without a push", worker);
  }
  if (header.apply && header.push) {
    fail(ErrorCode::invalid, "worker {} pushed and asked to apply in one request", worker);
  }
  if (!std::isfinite(header.lr) || !std::isfinite(header.scale)) {
    fail(ErrorCode::invalid, "worker {} sent a learning rate of {} and a scale of {}", worker,
         header.lr, header.scale);
  }
  check_sizes_of_update(header, rules);
}

/// What is pushed and where pulls go have the size of the shard's part.
void check_dense(const Request& request, const ShardRules& rules, const ShardShape& shape) {
  const int worker = request.header.worker;
  if (!request.encoded.empty()) {
    if (!compresses(rules.compression)) {
      fail(ErrorCode::invalid, "worker {} pushed an encoded message; this job does not compress",
           worker);
    }
  } else if (request.header.push && request.dense.size() != shape.dense) {
    fail(ErrorCode::invalid, "worker {} pushed {} floats; this server holds {}", worker,
         request.dense.size(), shape.dense);
  }
  if (request.header.pull && request.pull_into.size() != shape.dense) {
    fail(ErrorCode::invalid, "worker {} pulls into {} floats; this server holds {}", worker,
         request.pull_into.size(), shape.dense);
  }
}

void check_ascending(int worker, std::uint32_t table, std::span<const std::uint32_t> rows) {
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (rows[i] > rows[i - 1]) continue;
    fail(ErrorCode::corrupt,
         "worker {} pushed row {} of table {} after row {}; rows must ascend, each once", worker,
         rows[i], table, rows[i - 1]);
  }
}

/// For RowsPushed and RowsWanted alike: the table is here, its rows are, and sizes fit.
template <class Rows>
void check_rows(int worker, const Rows& rows, const ShardShape& shape) {
  if (rows.table >= shape.tables.size()) {
    fail(ErrorCode::invalid, "worker {} asks about table {}; this server has {} tables", worker,
         rows.table, shape.tables.size());
  }
  const TableShape& table = shape.tables[rows.table];
  if (rows.values.size() != rows.rows.size() * table.width) {
    fail(ErrorCode::corrupt, "worker {} sent {} floats with {} rows of table {}, {} floats each",
         worker, rows.values.size(), rows.rows.size(), rows.table, table.width);
  }
  for (const std::uint32_t row : rows.rows) {
    if (row >= table.first_row && row < table.end_row) continue;
    fail(ErrorCode::corrupt,
         "worker {} asks about row {} of table {}; this server has the rows from {} up to, not "
         "with, {}",
         worker, row, rows.table, table.first_row, table.end_row);
  }
}

/// Sums rely on this: rows ascend, and no table is named twice.
void check_pushed_rows(const Request& request, const ShardShape& shape) {
  const int worker = request.header.worker;
  if (!request.rows.empty() && !request.header.push) {
    fail(ErrorCode::invalid, "worker {} sent rows without a push", worker);
  }
  std::vector<bool> named(shape.tables.size());
  for (const RowsPushed& pushed : request.rows) {
    check_rows(worker, pushed, shape);
    check_ascending(worker, pushed.table, pushed.rows);
    if (named[pushed.table]) {
      fail(ErrorCode::corrupt, "worker {} pushed rows of table {} twice in one request", worker,
           pushed.table);
    }
    named[pushed.table] = true;
  }
}

}  // namespace

double ShardRules::weight_of(std::uint64_t staleness) const {
  const auto stale = static_cast<double>(staleness);
  switch (weight) {
    case Weight::none:
      return 1;
    case Weight::inverse:
      return staleness == 0 ? 1 : 1 / stale;
    case Weight::power:
      return std::pow(1 + stale, -weight_power);
  }
  return 1;
}

void check_rules(const ShardRules& rules) {
  if (rules.workers < 1) {
    fail(ErrorCode::invalid, "a server got {} workers; it needs at least one", rules.workers);
  }
  if (rules.parts < 1) {
    fail(ErrorCode::invalid, "a server got steps of {} parts; they have at least one", rules.parts);
  }
  const bool quorum = rules.consistency == ShardRules::Consistency::quorum;
  if (quorum && rules.quorum < 1) {
    fail(ErrorCode::invalid, "the quorum is {}; it must be at least 1", rules.quorum);
  }
  if (!std::isfinite(rules.weight_power) || rules.weight_power < 0) {
    fail(ErrorCode::invalid, "weight_power is {}; it must be a finite number of at least 0",
         rules.weight_power);
  }
}

// How far an update of so many pushes moves the model, and what their sum is multiplied by so that
// it has the size of a whole step's (UpdateScalars::share has the meaning of both). A gradient push
// is a share of the sum already, a delta one of as many parts of a mean.
double share_of(const ShardRules& rules, std::size_t pushes) {
  if (rules.consistency == ShardRules::Consistency::sync) return 1;
  return static_cast<double>(pushes) / rules.parts;
}

double factor_of(const ShardRules& rules, std::size_t pushes) {
  const bool sync = rules.consistency == ShardRules::Consistency::sync;
  const int parts = sync ? rules.workers : rules.parts;
  return 1 / share_of(rules, pushes) / (rules.deltas ? parts : 1);
}

void check_generation(const RequestHeader& header, std::int64_t generation) {
  if (header.generation == generation) return;
  fail(ErrorCode::cancelled,
       "this server serves group {} of the workers, the message is of group {}", generation,
       header.generation);
}

// Everything that a request says of itself is looked at here, before the shard has changed anything
// and whichever way it came: a worker is another process, perhaps of another build, and the shard's
// sums and copies trust sizes, rows and order from here on. Errors of a worker's making are its own
// to hear (Request::refuse); nobody else's training ends by them.
void check_request(const Request& request, const ShardRules& rules, const ShardShape& shape) {
  const int worker = request.header.worker;
  if (worker < 0 || worker >= rules.workers) {
    fail(ErrorCode::invalid, "a request came from worker {}; the workers are 0 to {}", worker,
         rules.workers - 1);
  }
  check_exchange(request.header, rules);
  check_dense(request, rules, shape);
  check_pushed_rows(request, shape);
  for (const RowsWanted& wanted : request.rows_wanted) check_rows(worker, wanted, shape);
}

}  // namespace cohort::server
