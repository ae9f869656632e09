#include "strategy/codec_shape.h"

#include <algorithm>

namespace cohort {

CodecShape codec_shape(const FlatLayout& layout) {
  CodecShape shape{.count = layout.size};
  for (const FlatEntry& entry : layout.entries) {
    if (entry.shape.size() < 2 || entry.count == 0) continue;
    const auto rows = static_cast<std::size_t>(entry.shape.front());
    shape.matrices.push_back({.offset = entry.offset, .rows = rows, .columns = entry.count / rows});
  }
  return shape;
}

void clear_padding(const FlatLayout& layout, std::span<float> values) {
  std::size_t end = 0;
  for (const FlatEntry& entry : layout.entries) {
    std::ranges::fill(values.subspan(end, entry.offset - end), 0.0F);
    end = entry.offset + entry.count;
  }
  std::ranges::fill(values.subspan(end), 0.0F);
}

}  // namespace cohort
