#include "strategy/servers/server_worker.h"

#include <algorithm>

#include "base/fail.h"
#include "gossip/claims.h"
#include "optimizer/optimizer.h"
#include "server/wire/wire.h"
#include "strategy/compressed_gradients.h"
#include "strategy/own_memory_forms.h"
#include "strategy/servers/server_rule.h"

namespace cohort::strategy {
namespace {

/// The model as it is, before any step.
tensor::TrainingState state_of(Model& model) {
  const tensor::ModelLayout layout = tensor::ModelLayout::of(model);
  tensor::TrainingState state;
  state.parameters.resize(layout.parameters.size);
  state.buffers.resize(layout.buffers.size);
  tensor::copy_values(model,
                      {.parameters = state.parameters, .gradients = {}, .buffers = state.buffers});
  return state;
}

WaitFor waits_for(const server::Exchange& exchange) {
  if (exchange.push || exchange.apply) return WaitFor::servers_update;
  return exchange.claim ? WaitFor::servers_work : WaitFor::servers_parameters;
}

}  // namespace

ServerWorker::ServerWorker(const StrategyContext& context)
    : context_(context),
      traits_(kinds::way_of(context.options).traits),
      table_place_(table_place(context.options)),
      layout_(tensor::ModelLayout::of(context.model, table_place_)),
      order_(context.model, table_place_),
      sums_(context),
      buffers_((layout_.buffers.size + 1) * sizeof(float)),
      client_(client_options(), context.store) {}

bool ServerWorker::all_save() const {
  return !in_lockstep() || server::compresses(context_.options.compression);
}

std::optional<cluster::Claim> ServerWorker::next_work() {
  const PhaseSpan span(context_.phases, Phase::communication);
  server::Exchange exchange;
  exchange.claim = true;
  return timed_exchange(exchange).claim;
}

void ServerWorker::begin_last_backward(const Vote& vote) {
  vote_ = vote;
  space_->begin_last_backward();
}

void ServerWorker::meet() {
  PhaseSpan span(context_.phases, Phase::communication);
  last_push();
  span.next(Phase::wait);
  sums_.wait_for_all();  // Nobody pushes any more, so now all pull the same.
  span.next(Phase::communication);
  // A training that goes on from here goes on with what the worker had, not with what it gets now.
  if (server::compresses(context_.options.compression)) link_at_meeting_ = client_.memory();
  server::Exchange exchange;
  exchange.pull = true;
  exchange.exact = true;
  exchange_with_servers(exchange);
  take_parameters();
  sums_.mean(space_->memory().buffers);
  fetch_tables_for_chief();
}

StrategyReport ServerWorker::report() const {
  return {words(), client_.traffic() + sums_.traffic()};
}

void ServerWorker::close() noexcept {
  client_.close();
  sums_.close();
}

bool ServerWorker::in_lockstep() const {
  return traits_.lockstep;
}

bool ServerWorker::takes_claims() const {
  return traits_.hands_out_work;
}

bool ServerWorker::gets_work_with_answers() const {
  const bool waits = consistency_of(context_.options) == server::ShardRules::Consistency::quorum;
  return takes_claims() && (!waits || context_.servers == 1);
}

double ServerWorker::parts_of_step() const {
  return static_cast<double>(takes_claims() ? context_.parts : sums_.world());
}

// The model's tensors move last: whatever fails before leaves the model as it was.
void ServerWorker::make_space(std::span<float> parameters, std::span<float> gradients) {
  const tensor::FlatMemory memory{.parameters = parameters,
                                  .gradients = gradients,
                                  .buffers = buffers_.floats().first(layout_.buffers.size)};
  tensor::TrainingState as_it_is;
  const tensor::TrainingState* start = context_.start;
  if (start != nullptr) check_start(*start);
  if (is_chief() && start == nullptr) {
    as_it_is = state_of(context_.model);
    start = &as_it_is;
  }
  const bool gives = is_chief() && !client_.has_model();
  if (gives) give_first_model(*start);
  // take_buffers() waits for all, so nobody claims or pushes anything new before all have done so.
  if (start != nullptr && !start->unanswered.empty()) client_.push_again(start->unanswered);
  server::Exchange exchange;
  exchange.pull = true;
  exchange_with_servers(exchange);
  first_step_ = chiefs(is_chief() ? step_at(*start, client_.version()) : 0);
  known_step_ = first_step_;
  take_buffers(memory.buffers, start);
  take_own_state(context_.start);
  // Servers that have outlived all workers have gone on since it was saved.
  if (chiefs(gives ? 1 : 0) != 0) recall_link(context_.start);
  keep_tables_apart();
  space_.emplace(context_.model, memory, table_place_);
  take_parameters();
  context_.start = nullptr;  // It is its owner's again.
}

void ServerWorker::check_start(const tensor::TrainingState& start) const {
  if (!start.parameters.empty()) check_size("parameters", start.parameters.size(), order_.floats());
  for (const auto& slot : start.slots) check_size("floats of a slot", slot.size(), order_.floats());
  check_size("floats of buffers", start.buffers.size(), layout_.buffers.size);
}

// A state without parameters says that the servers had them. Where they have none now, nobody has.
void ServerWorker::give_first_model(const tensor::TrainingState& start) {
  if (start.parameters.empty() && order_.floats() > 0) {
    fail(ErrorCode::corrupt,
         "the servers have lost their model and no worker has it; it was after step {}. Go on from "
         "the last checkpoint with --resume auto",
         start.step);
  }
  server::ServerModel model;
  to_servers(order_, start.parameters, model, kParameters);
  model.work = work_left(start, context_.parts);
  complete_first_model(start, model);
  if (link_of(start.link, context_.options.compression.kind)) {
    put_padding(layout_.parameters, start.link.doubles, model.dense);
  }
  client_.initialise(model);
}

std::int64_t ServerWorker::chiefs(std::int64_t number) {
  sums_.take_first(std::span(&number, 1));
  return number;
}

bool ServerWorker::was_pushed(const tensor::TrainingState* start) const {
  const auto pushed = own_floats(start, kPushed);
  return !pushed.empty() && pushed.back().size() == layout_.buffers.size &&
         first_step_ > start->step;
}

// Those of a worker that has none of its own, and in step those of all, are the chief's. Waits for
// all workers.
void ServerWorker::take_buffers(std::span<float> buffers, const tensor::TrainingState* start) {
  if (start != nullptr) {
    const std::vector<float>& own =
        was_pushed(start) ? own_floats(start, kPushed).back() : start->buffers;
    std::ranges::copy(own, buffers.begin());
  }
  fill_from_chief(buffers, start != nullptr && !in_lockstep());
}

void ServerWorker::fill_from_chief(std::span<float> values, bool has_own) {
  if (!sums_.any(!has_own && !is_chief())) return;
  std::vector<float> chiefs(values.begin(), values.end());
  sums_.take_first(chiefs);
  if (!has_own) std::ranges::copy(chiefs, values.begin());
}

// A worker has only those rows of a table that it has asked for; the chief of a new training has
// all values, as it has given them.
void ServerWorker::keep_tables_apart() {
  if (table_place_ == tensor::Tables::among_parameters) return;
  const bool has_values = is_chief() && context_.start == nullptr;
  for (const NamedTensor& table : tensor::tables_of(context_.model)) {
    const std::size_t index = tables_.size();
    tables_.push_back(std::make_unique<tensor::TableRows>(
        table.tensor, has_values, [this, index](auto rows) { fetch(index, rows); }));
  }
}

void ServerWorker::save_servers(tensor::TrainingState& state, server::ServerModel& model,
                                std::int64_t step) {
  client_.read_model(model);
  padding_ = server::compresses(context_.options.compression)
                 ? padding_of(layout_.parameters, model.dense)
                 : std::vector<double>();
  from_servers(order_, model, kParameters, state.parameters);
  state.work = takes_claims() ? model.work : work_after(step, context_.parts);
  state.step = gossip::whole_steps(state.work);
  known_step_ = std::max(known_step_, state.step);
}

void ServerWorker::save_link(tensor::TrainingState& state) {
  if (!server::compresses(context_.options.compression)) return state.link.clear();
  state.link = own_of_link(link_at_meeting_ ? *link_at_meeting_ : client_.memory(),
                           context_.options.compression.kind);
  if (is_chief()) state.link.doubles = padding_;
}

void ServerWorker::begin_own_state(tensor::TrainingState& state, std::int64_t step) {
  state = tensor::TrainingState();
  state.step = step;
  state.work = work_after(step, context_.parts);
  save_link(state);
}

// Only from a checkpoint: what messages of a broken group have left out is not known for sure.
void ServerWorker::recall_link(const tensor::TrainingState* start) {
  if (start == nullptr || start->link.empty()) return;
  const auto link = link_of(start->link, context_.options.compression.kind);
  if (link) client_.recall(*link);
}

void ServerWorker::leave_with_servers(tensor::TrainingState& state, std::int64_t step) const {
  state.parameters.clear();
  state.work = work_after(step, context_.parts);
  state.step = step;
  state.own.clear();
  state.link.clear();
  state.unanswered.clear();
  if (takes_claims()) state.unanswered = client_.unanswered();
}

server::ExchangeReply ServerWorker::exchange_with_servers(server::Exchange& exchange) {
  const Waiting waiting(context_.activity, waits_for(exchange));
  exchange.stop = vote_.stop;
  exchange.save = vote_.save;
  const server::ExchangeReply reply = client_.exchange(exchange);
  if (reply.claim) {
    known_step_ = std::max(known_step_, reply.claim->step);
    piece_ = *reply.claim;
  }
  return reply;
}

// The time in which the servers kept the push waiting for other workers' is no communication.
server::ExchangeReply ServerWorker::timed_exchange(server::Exchange& exchange) {
  const auto begin = Clock::now();
  const server::ExchangeReply reply = exchange_with_servers(exchange);
  const auto held =
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(reply.waited_seconds));
  context_.phases.move(Phase::communication, Phase::wait, std::min(held, Clock::now() - begin));
  return reply;
}

void ServerWorker::add_touched_rows(server::Exchange& exchange, double factor) {
  for (const auto& table : tables_) {
    tensor::TableRows::Touched touched = table->touched();
    for (float& gradient : touched.gradients) gradient *= static_cast<float>(factor);
    exchange.rows.push_back({std::move(touched.rows), std::move(touched.gradients)});
    table->begin_step();
  }
}

double ServerWorker::table_square_sum() const {
  double sum = 0;
  for (const auto& table : tables_) sum += optimizer::sum_of_squares(table->touched().gradients);
  return sum;
}

server::ClientOptions ServerWorker::client_options() const {
  server::ClientOptions options;
  options.worker = context_.engine.rank();
  options.servers = context_.servers;
  options.generation = context_.generation;
  const server::ModelSize size = server_model_size(context_.options, context_.model);
  options.dense = size.dense;
  options.matrices = size.matrices;
  options.tables = size.tables;
  options.compression = context_.options.compression;
  if (corrects_momentum(context_.options, context_.optimizer_options)) {
    options.momentum = worker_momentum(context_.optimizer_options);
  }
  options.seed = context_.seed;
  // Gloo on the loopback was asked for by a user who wants everything to go through sockets.
  options.share_memory = !context_.engine.address().starts_with("127.");
  options.cores = context_.cores;
  options.timeout = context_.timeout;
  return options;
}

void ServerWorker::fetch(std::size_t table, std::span<const std::uint32_t> rows) {
  tensor::TableRows& target = *tables_[table];
  fetched_.resize(rows.size() * target.width());
  client_.pull_rows(table, rows, fetched_);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::copy_n(fetched_.data() + i * target.width(), target.width(), target.row(rows[i]).data());
  }
}

// In portions, so that a large table needs no second copy in memory.
void ServerWorker::fetch_tables_for_chief() {
  if (!is_chief()) return;
  constexpr std::size_t kRowsAtOnce = 1 << 16;
  for (std::size_t table = 0; table < tables_.size(); ++table) {
    for (std::size_t begin = 0; begin < tables_[table]->rows(); begin += kRowsAtOnce) {
      std::vector<std::uint32_t> rows(std::min(kRowsAtOnce, tables_[table]->rows() - begin));
      for (std::size_t i = 0; i < rows.size(); ++i) {
        rows[i] = static_cast<std::uint32_t>(begin + i);
      }
      fetch(table, rows);
    }
  }
}

}  // namespace cohort::strategy
