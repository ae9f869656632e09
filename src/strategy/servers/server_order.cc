#include "strategy/servers/server_order.h"

#include <algorithm>
#include <map>
#include <string>

namespace cohort {
namespace {

// Floats of the layout between the end of entry `index` and what comes next.
std::size_t padding_after(const FlatLayout& layout, std::size_t index) {
  const bool last = index + 1 == layout.entries.size();
  const std::size_t next = last ? layout.size : layout.entries[index + 1].offset;
  return next - layout.entries[index].offset - layout.entries[index].count;
}

}  // namespace

ServerOrder::ServerOrder(Model& model, Tables place) {
  const FlatLayout state = ModelLayout::of(model, Tables::among_parameters).parameters;
  const FlatLayout server = ModelLayout::of(model, place).parameters;
  floats_ = state.size;
  dense_floats_ = server.size;
  std::map<std::string, std::size_t> dense_at;
  for (const FlatEntry& entry : server.entries) dense_at[entry.name] = entry.offset;
  for (std::size_t i = 0; i < state.entries.size(); ++i) {
    const FlatEntry& entry = state.entries[i];
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
    const auto end = std::ranges::copy(state.subspan(piece.in_state, piece.count),
                                       dense.subspan(piece.on_server).begin())
                         .out;
    std::fill_n(end, piece.padding, 0.0F);
  }
}

void ServerOrder::put_dense(std::span<const float> dense, std::span<float> state) const {
  for (const Piece& piece : dense_) {
    const auto end = std::ranges::copy(dense.subspan(piece.on_server, piece.count),
                                       state.subspan(piece.in_state).begin())
                         .out;
    std::fill_n(end, piece.padding, 0.0F);
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
  const auto end =
      std::ranges::copy(table.first(piece.count), state.subspan(piece.in_state).begin()).out;
  std::fill_n(end, piece.padding, 0.0F);
}

}  // namespace cohort
