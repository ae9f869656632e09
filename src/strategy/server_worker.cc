#include "strategy/server_worker.h"

#include <algorithm>

#include "optimizer/square_sum.h"
#include "strategy/codec_shape.h"
#include "strategy/server_options.h"

namespace cohort {

ServerWorker::ServerWorker(const StrategyContext& context)
    : context_(context),
      table_place_(pushes_deltas(context.options) ? Tables::among_parameters : Tables::apart),
      layout_(ModelLayout::of(context.model, table_place_)),
      sums_(context),
      buffers_((layout_.buffers.size + 1) * sizeof(float)),
      client_(client_options(), context.store) {
  for (const NamedTensor& table : tables_apart()) {
    const std::size_t index = tables_.size();
    tables_.push_back(std::make_unique<TableRows>(
        table.tensor, is_chief(), [this, index](auto rows) { fetch(index, rows); }));
  }
}

Pace ServerWorker::pace() const {
  return {.lockstep = in_lockstep(), .hands_out_work = hands_out_work(context_.options)};
}

std::optional<Claim> ServerWorker::next_work() {
  const PhaseSpan span(context_.phases, Phase::communication);
  Exchange exchange;
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
  float here = 1;
  sums_.sum({&here, 1});  // Nobody pushes any more, so now all pull the same.
  span.next(Phase::communication);
  Exchange exchange;
  exchange.pull = true;
  exchange.exact = true;
  exchange_with_servers(exchange);
  take_parameters();
  sums_.mean(space_->memory().buffers);
  if (is_chief()) fetch_whole_tables();
}

Traffic ServerWorker::traffic() const {
  const Traffic side = sums_.traffic();
  return {client_.bytes_sent() + side.sent, client_.bytes_received() + side.received};
}

void ServerWorker::close() noexcept {
  client_.close();
  sums_.close();
}

bool ServerWorker::in_lockstep() const {
  return context_.options.kind == "parameter-server" && context_.options.consistency == "sync" &&
         !pushes_deltas(context_.options);
}

void ServerWorker::make_space(std::span<float> parameters, std::span<float> gradients) {
  const FlatMemory memory{.parameters = parameters,
                          .gradients = gradients,
                          .buffers = buffers_.floats().first(layout_.buffers.size)};
  if (is_chief()) {
    copy_values(context_.model, memory, table_place_);
    std::vector<std::span<const float>> values;
    for (const auto& table : tables_) values.push_back(table->values());
    client_.initialise(memory.parameters, values);
  }
  sums_.take_first(memory.buffers);
  Exchange exchange;
  exchange.pull = true;
  exchange_with_servers(exchange);
  space_.emplace(context_.model, memory, table_place_);
  take_parameters();
}

ExchangeReply ServerWorker::exchange_with_servers(Exchange& exchange) {
  exchange.stop = vote_.stop;
  return client_.exchange(exchange);
}

ExchangeReply ServerWorker::timed_exchange(Exchange& exchange) {
  const auto begin = Clock::now();
  const ExchangeReply reply = exchange_with_servers(exchange);
  const auto held =
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(reply.held_seconds));
  context_.phases.move(Phase::communication, Phase::wait, std::min(held, Clock::now() - begin));
  return reply;
}

void ServerWorker::add_touched_rows(Exchange& exchange, double factor) {
  for (const auto& table : tables_) {
    TableRows::Touched touched = table->touched();
    for (float& gradient : touched.gradients) gradient *= static_cast<float>(factor);
    exchange.rows.push_back({std::move(touched.rows), std::move(touched.gradients)});
    table->begin_step();
  }
}

double ServerWorker::table_square_sum() const {
  double sum = 0;
  for (const auto& table : tables_) sum += sum_of_squares(table->touched().gradients);
  return sum;
}

std::vector<NamedTensor> ServerWorker::tables_apart() const {
  if (table_place_ == Tables::among_parameters) return {};
  return tables_of(context_.model);
}

ClientOptions ServerWorker::client_options() const {
  ClientOptions options;
  options.worker = context_.engine.rank();
  options.servers = context_.servers;
  options.dense = floats();
  options.matrices = codec_shape(layout_.parameters).matrices;
  for (const NamedTensor& table : tables_apart()) {
    const auto rows = static_cast<std::uint32_t>(table.tensor.size(0));
    options.tables.push_back({rows, static_cast<std::uint32_t>(table.tensor.numel() / rows)});
  }
  options.compression = context_.options.compression;
  if (corrects_momentum(context_.options, context_.optimizer_options)) {
    options.momentum = context_.optimizer_options.momentum;
  }
  options.seed = context_.seed;
  // Gloo on the loopback was asked for by a user who wants everything to go through sockets.
  options.share_memory = !context_.engine.address().starts_with("127.");
  options.cores = context_.cores;
  options.timeout = context_.timeout;
  return options;
}

void ServerWorker::fetch(std::size_t table, std::span<const std::uint32_t> rows) {
  TableRows& target = *tables_[table];
  fetched_.resize(rows.size() * target.width());
  client_.pull_rows(table, rows, fetched_);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::copy_n(fetched_.data() + i * target.width(), target.width(), target.row(rows[i]).data());
  }
}

void ServerWorker::fetch_whole_tables() {
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

}  // namespace cohort
