#include "strategy/compressed_gradients.h"

#include <algorithm>

#include "compression/codec.h"
#include "kinds/strategy_table.h"
#include "strategy/strategy.h"

namespace cohort::strategy {
namespace {

bool sends_gradients(const StrategyOptions& strategy) {
  return strategy.kind == "gossip" ? strategy.send == "gradients" : !pushes_deltas(strategy);
}

}  // namespace

compression::CodecShape codec_shape(const tensor::FlatLayout& layout) {
  compression::CodecShape shape{.count = layout.size};
  for (const tensor::FlatEntry& entry : layout.entries) {
    if (entry.shape.size() < 2 || entry.count == 0) continue;
    const auto rows = static_cast<std::size_t>(entry.shape.front());
    shape.matrices.push_back({.offset = entry.offset, .rows = rows, .columns = entry.count / rows});
  }
  return shape;
}

void clear_padding(const tensor::FlatLayout& layout, std::span<float> values) {
  std::size_t end = 0;
  for (const tensor::FlatEntry& entry : layout.entries) {
    std::ranges::fill(values.subspan(end, entry.offset - end), 0.0F);
    end = entry.offset + entry.count;
  }
  std::ranges::fill(values.subspan(end), 0.0F);
}

bool corrects_momentum(const StrategyOptions& strategy, const OptimizerOptions& own) {
  const CompressionOptions& codec = strategy.compression;
  // Where servers hand out work, workers apply it before they push in any case. Gossip by signs
  // learns with no momentum only, before them or after.
  if (!codec.momentum_correction || codec.kind == compression::kAutoCodec) return false;
  const compression::CodecRow& row = compression::codec_row(codec.kind);
  const bool can = std::ranges::count(row.keys, "momentum_correction") > 0;
  const bool in_step = kinds::way_of(strategy).traits.lockstep;
  return can && (row.with_loose_momentum || in_step) && sends_gradients(strategy) &&
         own.kind == "sgd" && own.momentum > 0;
}

compression::WorkerMomentum worker_momentum(const OptimizerOptions& own) {
  return {.factor = own.momentum, .nesterov = own.nesterov};
}

}  // namespace cohort::strategy
