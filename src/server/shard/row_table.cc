#include "server/shard/row_table.h"

#include <algorithm>

#include "base/failpoint.h"

namespace cohort {

RowTable::RowTable(const TableArea& area, const Optimizer& optimizer)
    : area_(area), floats_({.now = area.floats}, optimizer) {}

void RowTable::copy_rows(std::span<const std::uint32_t> rows, std::span<float> out) const {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::ranges::copy(floats().values.subspan(offset_of(rows[i]), width()),
                      out.subspan(i * width()).begin());
  }
}

void RowTable::update(const RowGradients& gradients, const UpdateScalars& scalars) {
  UpdateScalars weighted = scalars;
  weighted.gradient_scale *= gradients.weight;
  const std::span<const std::uint32_t> rows = gradients.rows;
  save_rows(area_, rows);
  failpoint("server.in-update");
  // Neighbouring rows are updated together.
  for (std::size_t begin = 0, end = 0; begin < rows.size(); begin = end) {
    for (end = begin + 1; end < rows.size() && rows[end] == rows[end - 1] + 1;) ++end;
    floats_.update_part(offset_of(rows[begin]),
                        gradients.values.subspan(begin * width(), (end - begin) * width()),
                        weighted);
    failpoint("server.in-update");
  }
}

std::size_t RowTable::offset_of(std::uint32_t row) const {
  return std::size_t{row - area_.shape.first_row} * area_.shape.width;
}

}  // namespace cohort
