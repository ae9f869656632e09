// What the ends of compressed messages remember: as bytes, and a worker's end of saving it and of
// going on from it.

#include "server/wire/link_memory.h"

#include <algorithm>

#include "server/client/server_client_state.h"

namespace cohort {
namespace {

void put_part(std::span<const float> from, std::vector<float>& all, std::size_t begin) {
  if (!from.empty()) std::ranges::copy(from, all.begin() + static_cast<std::ptrdiff_t>(begin));
}

/// A server's part of what stands place by place; nothing where there is none.
std::span<const float> part_of(const std::vector<float>& all, const ServerState& state,
                               std::size_t dense) {
  if (all.size() != dense) return {};
  return std::span(all).subspan(state.dense_begin, state.shape.dense);
}

}  // namespace

void write_codec_memory(std::vector<std::byte>& bytes, const CodecMemory& memory) {
  append(bytes, std::uint64_t{memory.floats.size()});
  append(bytes, std::uint64_t{memory.numbers.size()});
  append_all(bytes, std::span(memory.floats));
  append_all(bytes, std::span(memory.numbers));
}

CodecMemory take_codec_memory(MessageReader& message) {
  const auto floats = message.take<std::uint64_t>();
  const auto numbers = message.take<std::uint64_t>();
  CodecMemory memory;
  const auto values = message.take_all<float>(floats);
  memory.floats.assign(values.begin(), values.end());
  // Floats before them may leave them where whole numbers cannot be read in place.
  for (std::uint64_t i = 0; i < numbers; ++i) {
    memory.numbers.push_back(message.take<std::int64_t>());
  }
  return memory;
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
    const Bytes reply =
        state.calls->call({state_->head_of(WireKind::remember)}, state_->deadline());
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
    state.encoder->start_from(part_of(memory.rest, state, dense),
                              part_of(memory.velocity, state, dense));
    if (!same_servers) return;
    const LinkMemory::Codecs& codecs = memory.codecs[next++];
    state.encoder->codec().recall(codecs.worker);
    Bytes head = state_->head_of(WireKind::recall);
    write_codec_memory(head, codecs.server);
    const bool in_place =
        state_->shares_memory(state_->addresses[static_cast<std::size_t>(server)]);
    const auto has = in_place ? std::span<const float>() : part_of(memory.has, state, dense);
    state.calls->call({head, std::as_bytes(has)}, state_->deadline());
  });
}

}  // namespace cohort
