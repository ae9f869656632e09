#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "kinds/strategy_table.h"
#include "os/memory.h"
#include "server/client/server_client.h"
#include "strategy/servers/server_order.h"
#include "strategy/strategy.h"
#include "strategy/worker_sums.h"
#include "tensor/table_rows.h"

namespace cohort::strategy {

/// A worker that trains with servers; what all ways to push have in common: the servers, the model
/// and its tables. One per worker, used by the thread that trains; it waits for servers and workers
/// with the context's timeout.
///
/// Vocabulary. An *exchange* is one call to all servers: it may push, pull, ask for work, or
/// several of these. A server's *version* counts its updates. Workers are known by their ranks
/// here; the *chief* is rank 0. *In step* (sync) all push after the same steps and the servers
/// update once per step; otherwise a *piece*, one part of a step's batch, is *claimed* from server
/// 0 by whoever is free, and a push says of which pieces it is. *Tables* are embeddings: where
/// gradients are pushed, servers keep them and workers fetch the rows they use.
///
/// The beginning (make_space), in this order on all workers:
///   1. the chief gives the servers a first model, where they have none
///   2. pushes that got no answer in the last group are made again
///   3. everybody pulls; the chief says with which step it goes on
///   4. buffers, own slots and velocities are taken over, or the chief's where a worker has none
///   5. the model's tensors move into the memory of this object
///
/// Servers outlive a group of workers with what they have learned. Where they have a model all
/// workers pull it; otherwise the chief gives them the one to start from. In step (sync) a server's
/// version says which step its model is of. A worker whose last push got no answer cannot know
/// whether the servers have made that update: it carries what it had before the push and what it
/// had after it, and their version says in the next group which of the two counts. Otherwise it
/// carries the push itself and makes it again, before anybody takes new work: servers that have it
/// say so, the others apply it (PushLedger).
class ServerWorker : public Strategy, private WorkSource {
 public:
  explicit ServerWorker(const StrategyContext& context);

  tensor::FlatSpace& space() override { return *space_; }
  WorkSource* work() override { return takes_claims() ? this : nullptr; }
  void begin_last_backward(const Vote& vote) override;
  void meet() override;
  void sum_over_workers(collective::Numbers numbers) override { sums_.sum(numbers); }
  StrategyReport report() const override;
  std::int64_t first_step() const override { return first_step_; }
  bool all_carry() const override { return !in_lockstep(); }
  bool all_save() const override;
  void close() noexcept override;

 protected:
  /// For the user; see StrategyReport.
  virtual std::string words() const = 0;
  /// The chief: adds version and slots to a first model with the parameters of `start`.
  virtual void complete_first_model(const tensor::TrainingState& start,
                                    server::ServerModel& model) const = 0;
  /// The chief: the step to go on with, after `start`, when the servers are at `version`.
  virtual std::int64_t step_at(const tensor::TrainingState& start, std::uint64_t version) const = 0;
  /// Takes over what this worker has for itself. All workers call it together.
  virtual void take_own_state(const tensor::TrainingState* start) = 0;
  /// Gives what was not pushed yet, and tells the servers that nothing more will come.
  virtual void last_push() = 0;
  /// After a pull: makes what came the model's parameters.
  virtual void take_parameters() = 0;

  /// Whether all make every step together.
  bool in_lockstep() const;
  /// Whether parts of steps are handed out, and nobody waits for anybody.
  bool takes_claims() const;
  /// Whether the next piece of work may come with the answer to a push. Not where several servers
  /// keep pushes waiting for others': one of them may then wait for a worker whose push another one
  /// keeps, because that worker has the last piece.
  bool gets_work_with_answers() const;
  /// A gradient here times this is the mean over this worker's own rows.
  double parts_of_step() const;
  std::size_t floats() const { return layout_.parameters.size; }

  /// Brings the servers, the model and this worker together. All workers call it together.
  void make_space(std::span<float> parameters, std::span<float> gradients);

  server::ExchangeReply exchange_with_servers(server::Exchange& exchange);
  /// The same; the time the servers let this worker wait for others counts as waiting.
  server::ExchangeReply timed_exchange(server::Exchange& exchange);

  /// The gradients of this step's rows of all tables, times `factor`.
  void add_touched_rows(server::Exchange& exchange, double factor);
  double table_square_sum() const;

  /// Whether the servers have made the update of the push that got no answer before `start`.
  bool was_pushed(const tensor::TrainingState* start) const;
  /// The chief's number. All call it.
  std::int64_t chiefs(std::int64_t number);
  /// Replaces the floats of workers that have nothing to start from by the chief's. All call it.
  void fill_from_chief(std::span<float> values, bool has_own);
  /// The chief has whole tables then, for its run folder; others only the rows they asked for.
  void fetch_tables_for_chief();
  /// What the servers have; where no work is handed out, after so many steps.
  void save_servers(tensor::TrainingState& state, server::ServerModel& model, std::int64_t step);
  /// What messages to and from the servers have left out, where they are compressed.
  void save_link(tensor::TrainingState& state);
  /// The part of one worker, empty but for what it has done; see StateKeeper::save_own_state.
  void begin_own_state(tensor::TrainingState& state, std::int64_t step);
  /// Says that the servers have the model after so many steps. Leaves out all that is a worker's.
  void leave_with_servers(tensor::TrainingState& state, std::int64_t step) const;
  /// Where work is handed out: the newest step that this worker has heard of,
  std::int64_t known_step() const { return known_step_; }
  /// and the piece it has got last.
  const cluster::Claim& piece() const { return piece_; }

  StrategyContext context_;
  kinds::StrategyTraits traits_;
  tensor::Tables table_place_;
  tensor::ModelLayout layout_;  // As servers see the model: without tables where these are apart.
  ServerOrder order_;
  WorkerSums sums_;
  os::PrivateMemory buffers_;
  server::ServerClient client_;
  std::optional<tensor::FlatSpace> space_;  // From make_space() on.
  Vote vote_;                               // Of the step under way.

 private:
  std::optional<cluster::Claim> next_work() override;
  bool is_chief() const { return context_.engine.rank() == 0; }
  server::ClientOptions client_options() const;
  void check_start(const tensor::TrainingState& start) const;
  void give_first_model(const tensor::TrainingState& start);
  void recall_link(const tensor::TrainingState* start);
  void take_buffers(std::span<float> buffers, const tensor::TrainingState* start);
  void keep_tables_apart();
  void fetch(std::size_t table, std::span<const std::uint32_t> rows);

  std::vector<std::unique_ptr<tensor::TableRows>> tables_;  // Where they are apart.
  std::vector<float> fetched_;                              // Rows on their way into a table.
  std::vector<double> padding_;  // Of what save_servers() read; see padding_of().
  std::optional<server::LinkMemory> link_at_meeting_;  // Before everybody got the exact parameters.
  std::int64_t first_step_ = 0;
  std::int64_t known_step_ = 0;
  cluster::Claim piece_;
};

}  // namespace cohort::strategy
