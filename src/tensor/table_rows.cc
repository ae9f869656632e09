#include "tensor/table_rows.h"

#include <algorithm>

namespace cohort::tensor {
namespace {

TensorRegistry<TableMark>& marks() {
  static TensorRegistry<TableMark> registry;
  return registry;
}

TensorRegistry<TableRows>& tables() {
  static TensorRegistry<TableRows> registry;
  return registry;
}

}  // namespace

TableMark::TableMark(const torch::Tensor& parameter) : entry_(marks(), parameter, this) {}

bool TableMark::has(const torch::Tensor& parameter) {
  return marks().find(parameter) != nullptr;
}

TableRows* TableRows::of(const torch::Tensor& parameter) {
  return tables().find(parameter);
}

// The parameter becomes a view of memory that is this object's. Only rows that a step needs are
// ever right in it: the others are what they were when they were last fetched, or zero. So a table
// that is far larger than what a step touches costs address space here, and no traffic.
TableRows::TableRows(torch::Tensor parameter, bool keep_values, Fetch fetch)
    : parameter_(std::move(parameter)),
      rows_(static_cast<std::size_t>(parameter_.size(0))),
      width_(static_cast<std::size_t>(parameter_.numel()) / rows_),
      memory_(rows_ * width_ * sizeof(float)),
      fetch_(std::move(fetch)),
      entry_(tables(), parameter_, this) {
  torch::NoGradGuard no_grad;
  const torch::Tensor view = torch::from_blob(values().data(), parameter_.sizes(), torch::kFloat32);
  if (keep_values) view.copy_(parameter_);
  parameter_.set_data(view);
}

void TableRows::need(std::span<const std::int64_t> ids) {
  std::vector<std::uint32_t> wanted(ids.begin(), ids.end());
  std::ranges::sort(wanted);
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  fetch_(wanted);
}

// A row may come several times in one batch, and in several backward passes of one step: its
// gradients are summed in the order in which they come, which is the same in every run.
void TableRows::add_gradients(std::span<const std::int64_t> ids, std::span<const float> gradients) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto gradient = gradients.subspan(i * width_, width_);
    const auto [place, is_new] =
        place_of_row_.try_emplace(static_cast<std::uint32_t>(ids[i]), gradients_.size());
    if (is_new) {
      gradients_.insert(gradients_.end(), gradient.begin(), gradient.end());
    } else {
      float* sum = gradients_.data() + place->second;
      for (std::size_t k = 0; k < width_; ++k) sum[k] += gradient[k];
    }
  }
}

void TableRows::begin_step() {
  place_of_row_.clear();
  gradients_.clear();
}

TableRows::Touched TableRows::touched() const {
  Touched touched;
  for (const auto& [row, place] : place_of_row_) touched.rows.push_back(row);
  std::ranges::sort(touched.rows);
  touched.gradients.reserve(gradients_.size());
  for (const std::uint32_t row : touched.rows) {
    const auto begin = gradients_.begin() + static_cast<std::ptrdiff_t>(place_of_row_.at(row));
    touched.gradients.insert(touched.gradients.end(), begin,
                             begin + static_cast<std::ptrdiff_t>(width_));
  }
  return touched;
}

}  // namespace cohort::tensor
