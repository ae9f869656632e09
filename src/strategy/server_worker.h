#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/private_memory.h"
#include "server/server_client.h"
#include "strategy/strategy.h"
#include "strategy/worker_sums.h"
#include "tensor/table_rows.h"

namespace cohort {

/// A worker that trains with servers; what all ways to push have in common: the servers, the model
/// and its tables.
class ServerWorker : public Strategy {
 public:
  explicit ServerWorker(const StrategyContext& context);

  Pace pace() const override;
  FlatSpace& space() override { return *space_; }
  std::optional<Claim> next_work() override;
  void begin_last_backward(const Vote& vote) override;
  void meet() override;
  void sum_over_workers(std::span<float> values) override { sums_.sum(values); }
  Traffic traffic() const override;
  void close() noexcept override;

 protected:
  /// Gives what was not pushed yet, and tells the servers that nothing more will come.
  virtual void last_push() = 0;
  /// After a pull: makes what came the model's parameters.
  virtual void take_parameters() = 0;

  bool in_lockstep() const;
  std::size_t floats() const { return layout_.parameters.size; }

  /// Worker 0's model is everybody's: it gives it to the servers, and all pull it.
  void make_space(std::span<float> parameters, std::span<float> gradients);

  ExchangeReply exchange_with_servers(Exchange& exchange);
  /// The same; the time the servers let this worker wait for others counts as waiting.
  ExchangeReply timed_exchange(Exchange& exchange);

  /// The gradients of this step's rows of all tables, times `factor`.
  void add_touched_rows(Exchange& exchange, double factor);
  double table_square_sum() const;

  StrategyContext context_;
  Tables table_place_;
  ModelLayout layout_;
  WorkerSums sums_;
  PrivateMemory buffers_;
  ServerClient client_;
  std::optional<FlatSpace> space_;
  Vote vote_;

 private:
  bool is_chief() const { return context_.engine.rank() == 0; }
  std::vector<NamedTensor> tables_apart() const;
  ClientOptions client_options() const;
  void fetch(std::size_t table, std::span<const std::uint32_t> rows);
  void fetch_whole_tables();

  std::vector<std::unique_ptr<TableRows>> tables_;
  std::vector<float> fetched_;
};

}  // namespace cohort
