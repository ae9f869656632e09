#include "server/row_table.h"

#include <algorithm>

namespace cohort {

RowTable::RowTable(const TableShape& shape, const Optimizer& optimizer)
    : shape_(shape),
      floats_(std::size_t{shape.end_row - shape.first_row} * shape.width, optimizer) {}

void RowTable::copy_rows(std::span<const std::uint32_t> rows, std::span<float> out) const {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::ranges::copy(values().subspan(offset_of(rows[i]), width()),
                      out.subspan(i * width()).begin());
  }
}

void RowTable::update(const RowGradients& gradients, const UpdateScalars& scalars) {
  UpdateScalars weighted = scalars;
  weighted.gradient_scale *= gradients.weight;
  const std::span<const std::uint32_t> rows = gradients.rows;
  // Neighbouring rows are updated together.
  for (std::size_t begin = 0, end = 0; begin < rows.size(); begin = end) {
    for (end = begin + 1; end < rows.size() && rows[end] == rows[end - 1] + 1;) ++end;
    floats_.update_part(offset_of(rows[begin]),
                        gradients.values.subspan(begin * width(), (end - begin) * width()),
                        weighted);
  }
}

std::size_t RowTable::offset_of(std::uint32_t row) const {
  return std::size_t{row - shape_.first_row} * shape_.width;
}

}  // namespace cohort
