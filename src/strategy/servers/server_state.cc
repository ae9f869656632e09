#include "strategy/servers/server_state.h"

#include <algorithm>

#include "strategy/model_state.h"

namespace cohort {
namespace {

std::vector<float>& floats_of(ServerModel::Part& part, int slot) {
  if (slot == kParameters) return part.values;
  const auto index = static_cast<std::size_t>(slot);
  if (part.slots.size() <= index) part.slots.resize(index + 1);
  return part.slots[index];
}

template <class Visit>
void for_each_padding(const FlatLayout& layout, const Visit& visit) {
  std::size_t at = 0;
  for (const FlatEntry& entry : layout.entries) {
    for (; at < entry.offset; ++at) visit(at);
    at = entry.offset + entry.count;
  }
  for (; at < layout.size; ++at) visit(at);
}

/// Then the codec.
const std::string kLinkLabel = "servers: messages by ";

// The first vectors of floats of a link; then two of every server.
constexpr std::size_t kLinkVectors = 3;

void append_codec(const CodecMemory& codec, OwnMemory& own) {
  own.floats.push_back(codec.floats);
  own.numbers.push_back(static_cast<std::int64_t>(codec.numbers.size()));
  own.numbers.insert(own.numbers.end(), codec.numbers.begin(), codec.numbers.end());
}

/// The next codec's, whose numbers are taken off; nothing where there are not as many.
std::optional<CodecMemory> take_codec(const std::vector<float>& floats,
                                      std::span<const std::int64_t>& numbers) {
  if (numbers.empty()) return std::nullopt;
  const std::int64_t count = numbers.front();
  numbers = numbers.subspan(1);
  if (count < 0 || static_cast<std::size_t>(count) > numbers.size()) return std::nullopt;
  const auto own = numbers.first(static_cast<std::size_t>(count));
  numbers = numbers.subspan(own.size());
  return CodecMemory{.floats = floats, .numbers = {own.begin(), own.end()}};
}

}  // namespace

OwnMemory own_of_link(const LinkMemory& link, const std::string& codec) {
  if (link.empty()) return {};
  OwnMemory own{.meaning = kLinkLabel + codec, .floats = {link.rest, link.velocity, link.has}};
  for (const LinkMemory::Codecs& one : link.codecs) {
    append_codec(one.worker, own);
    append_codec(one.server, own);
  }
  return own;
}

std::optional<LinkMemory> link_of(const OwnMemory& own, const std::string& codec) {
  if (own.meaning != kLinkLabel + codec || own.floats.size() < kLinkVectors) return std::nullopt;
  LinkMemory link{.rest = own.floats[0], .velocity = own.floats[1], .has = own.floats[2]};
  std::span<const std::int64_t> numbers = own.numbers;
  for (std::size_t i = kLinkVectors; i + 1 < own.floats.size(); i += 2) {
    auto worker = take_codec(own.floats[i], numbers);
    auto server = take_codec(own.floats[i + 1], numbers);
    if (!worker || !server) return std::nullopt;
    link.codecs.push_back({*std::move(worker), *std::move(server)});
  }
  return link;
}

std::optional<std::pair<std::string, LinkMemory>> any_link_of(const OwnMemory& own) {
  if (!own.meaning.starts_with(kLinkLabel)) return std::nullopt;
  const std::string codec = own.meaning.substr(kLinkLabel.size());
  auto link = link_of(own, codec);
  if (!link) return std::nullopt;
  return std::pair(codec, *std::move(link));
}

std::vector<double> padding_of(const FlatLayout& layout, const ServerModel::Part& dense) {
  std::vector<double> padding;
  const auto add = [&](const std::vector<float>& floats) {
    for_each_padding(layout, [&](std::size_t at) { padding.push_back(floats[at]); });
  };
  add(dense.values);
  std::ranges::for_each(dense.slots, add);
  return padding;
}

void put_padding(const FlatLayout& layout, std::span<const double> padding,
                 ServerModel::Part& dense) {
  std::size_t floats = 0;
  for_each_padding(layout, [&](std::size_t) { ++floats; });
  if (padding.size() != floats * (1 + dense.slots.size())) return;
  const auto put = [&](std::vector<float>& into) {
    for_each_padding(layout, [&](std::size_t at) {
      into[at] = static_cast<float>(padding.front());
      padding = padding.subspan(1);
    });
  };
  put(dense.values);
  std::ranges::for_each(dense.slots, put);
}

void to_servers(const ServerOrder& order, std::span<const float> state, ServerModel& model,
                int slot) {
  std::vector<float>& dense = floats_of(model.dense, slot);
  dense.resize(order.dense());
  order.take_dense(state, dense);
  model.tables.resize(order.tables());
  for (std::size_t i = 0; i < order.tables(); ++i) {
    std::vector<float>& table = floats_of(model.tables[i], slot);
    table.resize(order.table(i));
    order.take_table(i, state, table);
  }
}

void from_servers(const ServerOrder& order, ServerModel& model, int slot,
                  std::vector<float>& state) {
  std::vector<float>& dense = floats_of(model.dense, slot);
  dense.resize(order.dense());
  if (order.tables() == 0) return state.swap(dense);
  state.resize(order.floats());
  order.put_dense(dense, state);
  for (std::size_t i = 0; i < order.tables(); ++i) {
    std::vector<float>& table = floats_of(model.tables[i], slot);
    table.resize(order.table(i));
    order.put_table(i, table, state);
  }
}

std::int64_t steps_done(const WorkLeft& work) {
  std::int64_t steps = work.next / work.parts;
  for (const Claim& claim : work.again) steps = std::min(steps, claim.step);
  return steps;
}

WorkLeft work_left(const TrainingState& state, std::int64_t parts) {
  if (state.work.parts == parts && steps_done(state.work) == state.step) return state.work;
  return work_after(state.step, parts);
}

std::int64_t updates_before(const TrainingState& state, std::size_t slots) {
  return state.slots.size() < slots ? 0 : state.updates;
}

void set_own(TrainingState& state, std::string_view meaning,
             const std::vector<std::span<const float>>& floats) {
  state.own.meaning = meaning;
  state.own.doubles.clear();
  state.own.numbers.clear();
  state.own.floats.resize(floats.size());
  for (std::size_t i = 0; i < floats.size(); ++i) {
    state.own.floats[i].assign(floats[i].begin(), floats[i].end());
  }
}

std::span<const std::vector<float>> own_floats(const TrainingState* state,
                                               std::string_view meaning) {
  const OwnMemory* own = own_of(state, meaning);
  return own != nullptr ? std::span(own->floats) : std::span<const std::vector<float>>();
}

}  // namespace cohort
