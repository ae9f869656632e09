#include "strategy/servers/server_order.h"

#include <algorithm>
#include <map>
#include <string>

namespace cohort::strategy {
namespace {

/// The parameters or a slot of a part of the servers' model; a slot that is missing is made, empty.
std::vector<float>& floats_of(server::ServerModel::Part& part, int slot) {
  if (slot == kParameters) return part.values;
  const auto index = static_cast<std::size_t>(slot);
  if (part.slots.size() <= index) part.slots.resize(index + 1);
  return part.slots[index];
}

/// Calls `visit` with every place of the layout that no tensor has.
template <class Visit>
void for_each_padding(const tensor::FlatLayout& layout, const Visit& visit) {
  std::size_t at = 0;
  for (const tensor::FlatEntry& entry : layout.entries) {
    for (; at < entry.offset; ++at) visit(at);
    at = entry.offset + entry.count;
  }
  for (; at < layout.size; ++at) visit(at);
}

/// Copies a tensor, and makes what stands behind it zero.
void copy_padded(std::span<const float> from, std::span<float> to, std::size_t padding) {
  const auto end = std::ranges::copy(from, to.begin()).out;
  std::fill_n(end, padding, 0.0F);
}

// Floats of the layout between the end of entry `index` and what comes next.
std::size_t padding_after(const tensor::FlatLayout& layout, std::size_t index) {
  const bool last = index + 1 == layout.entries.size();
  const std::size_t next = last ? layout.size : layout.entries[index + 1].offset;
  return next - layout.entries[index].offset - layout.entries[index].count;
}

}  // namespace

// A training state has tables among its parameters, since other strategies know of none; servers
// have them apart, and the dense rest closed up. The pieces are where a tensor stands in the one
// and in the other order. What is between tensors is padding, which is kept zero on both sides.
ServerOrder::ServerOrder(Model& model, tensor::Tables place) {
  const tensor::FlatLayout state =
      tensor::ModelLayout::of(model, tensor::Tables::among_parameters).parameters;
  const tensor::FlatLayout server = tensor::ModelLayout::of(model, place).parameters;
  floats_ = state.size;
  dense_floats_ = server.size;
  std::map<std::string, std::size_t> dense_at;
  for (const tensor::FlatEntry& entry : server.entries) dense_at[entry.name] = entry.offset;
  for (std::size_t i = 0; i < state.entries.size(); ++i) {
    const tensor::FlatEntry& entry = state.entries[i];
    Piece piece{.in_state = entry.offset, .count = entry.count, .padding = padding_after(state, i)};
    const auto found = dense_at.find(entry.name);
    if (found == dense_at.end()) {
      tables_.push_back(piece);
    } else {
      piece.on_server = found->second;
      dense_.push_back(piece);
    }
  }
}

void ServerOrder::take_dense(std::span<const float> state, std::span<float> dense) const {
  for (const Piece& piece : dense_) {
    copy_padded(state.subspan(piece.in_state, piece.count), dense.subspan(piece.on_server),
                piece.padding);
  }
}

void ServerOrder::put_dense(std::span<const float> dense, std::span<float> state) const {
  for (const Piece& piece : dense_) {
    copy_padded(dense.subspan(piece.on_server, piece.count), state.subspan(piece.in_state),
                piece.padding);
  }
}

void ServerOrder::take_table(std::size_t index, std::span<const float> state,
                             std::span<float> table) const {
  const Piece& piece = tables_[index];
  std::ranges::copy(state.subspan(piece.in_state, piece.count), table.begin());
}

void ServerOrder::put_table(std::size_t index, std::span<const float> table,
                            std::span<float> state) const {
  const Piece& piece = tables_[index];
  copy_padded(table.first(piece.count), state.subspan(piece.in_state), piece.padding);
}

std::vector<double> padding_of(const tensor::FlatLayout& layout,
                               const server::ServerModel::Part& dense) {
  std::vector<double> padding;
  const auto add = [&](const std::vector<float>& floats) {
    for_each_padding(layout, [&](std::size_t at) { padding.push_back(floats[at]); });
  };
  add(dense.values);
  std::ranges::for_each(dense.slots, add);
  return padding;
}

void put_padding(const tensor::FlatLayout& layout, std::span<const double> padding,
                 server::ServerModel::Part& dense) {
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

// Tables stand in the order of the model, on servers as in a state.
void to_servers(const ServerOrder& order, std::span<const float> state, server::ServerModel& model,
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

void from_servers(const ServerOrder& order, server::ServerModel& model, int slot,
                  std::vector<float>& state) {
  std::vector<float>& dense = floats_of(model.dense, slot);
  dense.resize(order.dense());
  // Without tables both have the same order, and a large model need not be copied.
  if (order.tables() == 0) return state.swap(dense);
  state.resize(order.floats());
  order.put_dense(dense, state);
  for (std::size_t i = 0; i < order.tables(); ++i) {
    std::vector<float>& table = floats_of(model.tables[i], slot);
    table.resize(order.table(i));
    order.put_table(i, table, state);
  }
}

}  // namespace cohort::strategy
