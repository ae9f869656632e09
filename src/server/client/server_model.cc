// A worker's end of what a checkpoint is made of: giving the servers their first model, reading the
// whole model, and what both ends of compressed messages remember (LinkMemory). None of it is asked
// for in a step, so all of it goes by gRPC calls of its own (ServerState::calls), beside the link
// that exchanges use. Floats travel in parts of bounded size, or by memory that the worker shares
// with a server of its host.

#include <algorithm>

#include "base/fail.h"
#include "server/client/server_client_state.h"
#include "server/wire/message_bytes.h"
#include "server/wire/model_message.h"

namespace cohort::server {
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

/// Gives `model` the size that it has on the servers together, as one of them tells it.
void resize_model(ServerModel& model, const ModelMessage& head, const ServerState& state,
                  const ClientOptions& options) {
  if (head.slots > kMostSlots || head.shape.floats() != state.shape.floats()) {
    fail(ErrorCode::corrupt, "it has a model of {} floats and {} slots instead of {} floats",
         head.shape.floats(), head.slots, state.shape.floats());
  }
  resize_part(model.dense, options.dense, head.slots);
  model.tables.resize(options.tables.size());
  for (std::size_t table = 0; table < options.tables.size(); ++table) {
    const TableSize& size = options.tables[table];
    resize_part(model.tables[table], std::size_t{size.rows} * size.width, head.slots);
  }
}

/// Puts a server's part where it belongs in what is of all servers together.
void put_part(std::span<const float> from, std::vector<float>& all, std::size_t begin) {
  if (!from.empty()) std::ranges::copy(from, all.begin() + static_cast<std::ptrdiff_t>(begin));
}

/// A server's part of what stands place by place; nothing where there is none.
std::span<const float> kept_part(const std::vector<float>& all, const ServerState& state,
                                 std::size_t dense) {
  if (all.size() != dense) return {};
  return std::span(all).subspan(state.dense_begin, state.shape.dense);
}

}  // namespace

rpc::Bytes ServerClient::State::head_of(RequestKind kind) const {
  rpc::Bytes bytes;
  write_request(bytes, kind, header_from(options.generation, options.worker));
  return bytes;
}

ReplyHeader ServerClient::State::look(ServerState& state) {
  const rpc::Bytes reply = state.calls->call({head_of(RequestKind::look)}, deadline());
  const ReplyHeader header = read_reply(reply).header;
  state.heard = header.version;
  return header;
}

std::size_t ServerClient::State::part_floats() const {
  return std::max<std::size_t>(options.model_part_bytes / sizeof(float), 1);
}

/// First its size, which the server checks, then its floats.
void ServerClient::State::give_part(const ServerModel& model, int server, ServerState& state) {
  FloatList<const float> list;
  visit_model(model, state, [&](const auto& values, std::size_t begin, std::size_t count) {
    list.add(std::span<const float>(values).subspan(begin, count));
  });
  rpc::Bytes head = head_of(RequestKind::initialise);
  append(head, std::uint64_t{list.size()});
  write_model(head, {.version = model.version,
                     .slots = model.dense.slots.size(),
                     .work = server == 0 ? model.work : cluster::WorkLeft(),
                     .shape = state.shape});
  state.calls->call({head}, deadline());
  std::size_t begin = 0;
  do {
    const std::size_t count = std::min(part_floats(), list.size() - begin);
    rpc::Bytes part = head_of(RequestKind::give_part);
    write_model_part(part, {.begin = begin, .count = count});
    rpc::MessageParts parts = {part};
    for (const auto span : list.part(begin, count)) parts.push_back(std::as_bytes(span));
    state.calls->call(parts, deadline());
    begin += count;
  } while (begin < list.size());
  state.heard = model.version;
}

/// The server made a copy when it was asked to read: its parts fit together, whatever is pushed
/// meanwhile.
void ServerClient::State::read_floats(ServerModel& model, const ModelMessage& head,
                                      ServerState& state) {
  const std::size_t total = state.shape.floats() * (1 + head.slots);
  FloatList<float> list;
  visit_model(model, state, [&](auto& values, std::size_t begin, std::size_t count) {
    list.add(std::span<float>(values).subspan(begin, count));
  });
  if (state.model_memory.size() > 0) {
    if (total > state.model_memory.size() / sizeof(float)) {
      fail(ErrorCode::corrupt, "its model has grown to {} floats", total);
    }
    list.put(0, {reinterpret_cast<const float*>(state.model_memory.data()), total});
    return;
  }
  for (std::size_t begin = 0; begin < total; begin += part_floats()) {
    const std::size_t count = std::min(part_floats(), total - begin);
    rpc::Bytes wanted = head_of(RequestKind::read_part);
    write_model_part(wanted, {.begin = begin, .count = count});
    const rpc::Bytes reply = state.calls->call({wanted}, deadline());
    MessageReader reader(read_reply(reply).rest);
    const auto part = reader.take_all<float>(count);
    if (!reader.rest().empty()) fail(ErrorCode::corrupt, "it sent more of its model than asked");
    list.put(begin, part);
  }
}

/// The number of memory that the server of this host writes into; 0 for one elsewhere.
std::uint64_t ServerClient::State::memory_for_model(int server, ServerState& state) {
  if (!shares_memory(addresses[static_cast<std::size_t>(server)])) return 0;
  if (state.model_memory.size() == 0) {
    const std::size_t count = std::max<std::size_t>(look(state).model_floats, 1);
    state.model_memory = os::SharedMemory::create(count * sizeof(float));
    state.model_number = next_memory_number();
    store.give(memory_key(store, options.worker, server, state.model_number), state.model_memory,
               1);
  }
  return state.model_number;
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

/// All servers are asked before the first is waited for, so that they copy at the same time.
void ServerClient::read_model(ServerModel& model) {
  std::vector<std::unique_ptr<rpc::RpcClient::Pending>> pending;
  const rpc::Bytes head = state_->head_of(RequestKind::read);
  std::vector<std::uint64_t> numbers(state_->servers.size());
  state_->for_all([&](int server, ServerState& state) {
    auto& number = numbers[static_cast<std::size_t>(server)];
    number = state_->memory_for_model(server, state);
    rpc::MessageParts parts = {head};
    if (number != 0) parts.push_back(std::as_bytes(std::span(&number, 1)));
    pending.push_back(state.calls->start(parts, state_->deadline()));
  });
  std::optional<std::uint64_t> version;
  state_->for_all([&](int server, ServerState& state) {
    const rpc::Bytes& reply = pending[static_cast<std::size_t>(server)]->wait();
    ModelMessage part = read_model_message(read_reply(reply).rest);
    resize_model(model, part, state, state_->options);
    state_->read_floats(model, part, state);
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

LinkMemory ServerClient::memory() {
  LinkMemory memory;
  const std::size_t dense = state_->options.dense;
  state_->for_all([&](int, ServerState& state) {
    if (!state.encoder) return;
    if (memory.empty()) {
      memory.has.assign(incoming().begin(), incoming().end());
      memory.rest.resize(state.encoder->rest().empty() ? 0 : dense);
      memory.velocity.resize(state.encoder->velocity().empty() ? 0 : dense);
    }
    put_part(state.encoder->rest(), memory.rest, state.dense_begin);
    put_part(state.encoder->velocity(), memory.velocity, state.dense_begin);
    const rpc::Bytes reply =
        state.calls->call({state_->head_of(RequestKind::remember)}, state_->deadline());
    MessageReader reader(read_reply(reply).rest);
    memory.codecs.push_back(
        {.worker = state.encoder->codec().memory(), .server = take_codec_memory(reader)});
  });
  return memory;
}

void ServerClient::recall(const LinkMemory& memory) {
  const std::size_t dense = state_->options.dense;
  std::size_t compressing = 0;
  for (const ServerState& state : state_->servers) compressing += state.encoder ? 1 : 0;
  const bool same_servers = compressing > 0 && memory.codecs.size() == compressing;
  if (same_servers && memory.has.size() == dense) {
    std::ranges::copy(memory.has, incoming().begin());
  }
  std::size_t next = 0;
  state_->for_all([&](int server, ServerState& state) {
    if (!state.encoder) return;
    state.encoder->start_from(kept_part(memory.rest, state, dense),
                              kept_part(memory.velocity, state, dense));
    if (!same_servers) return;
    const LinkMemory::Codecs& codecs = memory.codecs[next++];
    state.encoder->codec().recall(codecs.worker);
    rpc::Bytes head = state_->head_of(RequestKind::recall);
    write_codec_memory(head, codecs.server);
    const bool in_place =
        state_->shares_memory(state_->addresses[static_cast<std::size_t>(server)]);
    const auto has = in_place ? std::span<const float>() : kept_part(memory.has, state, dense);
    state.calls->call({head, std::as_bytes(has)}, state_->deadline());
  });
}

}  // namespace cohort::server
