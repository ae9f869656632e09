// A worker's end of what concerns the whole model: giving the first one, and reading it.

#include <algorithm>

#include "base/fail.h"
#include "server/server_client_state.h"

namespace cohort {
namespace {

/// One after the other, all that a part of the model is made of: visit(values of all, begin, count)
/// for values and slots, of `slots` each.
template <class Part, class Visit>
void visit_part(Part& part, std::size_t begin, std::size_t count, Visit&& visit) {
  visit(part.values, begin, count);
  for (auto& slot : part.slots) visit(slot, begin, count);
}

/// In the order of ModelMessage.
template <class Model, class Visit>
void visit_model(Model& model, const ServerState& state, Visit&& visit) {
  visit_part(model.dense, state.dense_begin, state.shape.dense, visit);
  for (std::size_t table = 0; table < state.shape.tables.size(); ++table) {
    const TableShape& shape = state.shape.tables[table];
    visit_part(model.tables[table], std::size_t{shape.first_row} * shape.width, shape.floats(),
               visit);
  }
}

void check_part(const std::string& what, const ServerModel::Part& part, std::size_t floats,
                std::size_t slots) {
  const auto fits = [&](const auto& values) { return values.size() == floats; };
  if (fits(part.values) && part.slots.size() == slots && std::ranges::all_of(part.slots, fits)) {
    return;
  }
  fail(ErrorCode::invalid,
       "the first model has {} floats and {} slots {}; {} floats and {} slots of that size are "
       "wanted",
       part.values.size(), part.slots.size(), what, floats, slots);
}

void check_model(const ServerModel& model, const ClientOptions& options) {
  const std::size_t slots = model.dense.slots.size();
  check_part("outside tables", model.dense, options.dense, slots);
  if (model.tables.size() != options.tables.size()) {
    fail(ErrorCode::invalid, "the first model has {} tables; {} are wanted", model.tables.size(),
         options.tables.size());
  }
  for (std::size_t table = 0; table < options.tables.size(); ++table) {
    const TableSize& size = options.tables[table];
    check_part(fmt::format("in table {}", table), model.tables[table],
               std::size_t{size.rows} * size.width, slots);
  }
}

void resize_part(ServerModel::Part& part, std::size_t floats, std::size_t slots) {
  part.values.resize(floats);
  part.slots.resize(slots);
  for (auto& slot : part.slots) slot.resize(floats);
}

}  // namespace

Bytes ServerClient::State::head_of(WireKind kind) const {
  WireHead head{.kind = kind};
  head.header.epoch = options.epoch;
  head.header.worker = options.worker;
  Bytes bytes;
  write_request(bytes, head, {}, {});
  return bytes;
}

ReplyHeader ServerClient::State::look(ServerState& state) {
  const Bytes reply = state.calls->call({head_of(WireKind::look)}, deadline());
  const ReplyHeader header = read_reply(reply).header;
  state.heard = header.version;
  return header;
}

void ServerClient::State::give_part(const ServerModel& model, int server, ServerState& state) {
  Bytes head = head_of(WireKind::initialise);
  write_model(head, {.version = model.version,
                     .slots = model.dense.slots.size(),
                     .work = server == 0 ? model.work : WorkLeft(),
                     .shape = state.shape});
  MessageParts parts = {head};
  visit_model(model, state, [&](const auto& values, std::size_t begin, std::size_t count) {
    parts.push_back(std::as_bytes(std::span(values).subspan(begin, count)));
  });
  state.calls->call(parts, deadline());
  state.heard = model.version;
}

void ServerClient::State::take_part(ServerModel& model, const ModelMessage& part,
                                    const ServerState& state) const {
  resize_part(model.dense, options.dense, part.slots);
  model.tables.resize(options.tables.size());
  for (std::size_t table = 0; table < options.tables.size(); ++table) {
    const TableSize& size = options.tables[table];
    resize_part(model.tables[table], std::size_t{size.rows} * size.width, part.slots);
  }
  if (part.floats.size() != state.shape.floats() * (1 + part.slots)) {
    fail(ErrorCode::corrupt, "it sent a model of {} floats instead of {}", part.floats.size(),
         state.shape.floats() * (1 + part.slots));
  }
  std::span<const float> rest = part.floats;
  visit_model(model, state, [&](auto& values, std::size_t begin, std::size_t count) {
    std::copy_n(rest.data(), count, values.data() + begin);
    rest = rest.subspan(count);
  });
}

bool ServerClient::has_model() {
  bool all = true;
  state_->for_all([&](int, ServerState& state) { all = state_->look(state).has_model && all; });
  return all;
}

void ServerClient::initialise(const ServerModel& model) {
  check_model(model, state_->options);
  state_->for_all([&](int server, ServerState& state) { state_->give_part(model, server, state); });
}

void ServerClient::read_model(ServerModel& model) {
  std::vector<std::unique_ptr<RpcClient::Pending>> pending;
  const Bytes head = state_->head_of(WireKind::read);
  std::vector<std::string> paths(state_->servers.size());
  state_->for_all([&](int server, ServerState& state) {
    const auto index = static_cast<std::size_t>(server);
    if (state_->shares_memory(state_->addresses[index])) {
      if (state.model_memory.size() == 0) {
        const std::size_t floats = state_->look(state).model_floats;
        state.model_memory = SharedMemory::create(std::max<std::size_t>(floats, 1) * sizeof(float));
      }
      paths[index] = state.model_memory.path();
    }
    const auto path = std::as_bytes(std::span(paths[index].data(), paths[index].size()));
    pending.push_back(state.calls->start({head, path}, state_->deadline()));
  });
  std::optional<std::uint64_t> version;
  state_->for_all([&](int server, ServerState& state) {
    const Bytes& reply = pending[static_cast<std::size_t>(server)]->wait();
    ModelMessage part = read_model_message(read_reply(reply).rest);
    if (state.model_memory.size() > 0) {
      part.floats = {reinterpret_cast<const float*>(state.model_memory.data()),
                     state.shape.floats() * (1 + part.slots)};
    }
    state_->take_part(model, part, state);
    if (server == 0) model.work = std::move(part.work);
    state.heard = part.version;
    version = std::min(part.version, version.value_or(part.version));
  });
  model.version = version.value_or(0);
}

std::uint64_t ServerClient::version() const {
  std::optional<std::uint64_t> smallest;
  for (const ServerState& state : state_->servers) {
    smallest = std::min(state.heard, smallest.value_or(state.heard));
  }
  return smallest.value_or(0);
}

}  // namespace cohort
