#include "parallel/gradient_memory.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "base/fail.h"
#include "optimizer/optimizer.h"

namespace cohort::parallel {
namespace {

/// torch::nn::utils::clip_grad_norm_'s, so that a norm of 0 is no division by it.
constexpr double kNormEpsilon = 1e-6;

/// Bytes at whose multiples places begin.
constexpr std::int64_t kPlaceAlignment = 64;

std::int64_t aligned_count(const torch::Tensor& tensor) {
  const std::int64_t step = kPlaceAlignment / static_cast<std::int64_t>(tensor.element_size());
  return (tensor.numel() + step - 1) / step * step;
}

void check_parameter(const NamedTensor& named) {
  const auto type = named.tensor.scalar_type();
  if (type == torch::kFloat32 || type == torch::kFloat64 || type == torch::kBFloat16) return;
  fail(ErrorCode::invalid,
       "parameter {} is of {}: only float32, float64 and bfloat16 are trained together", named.name,
       torch::toString(type));
}

/// A part of a flat tensor as a tensor of its own: a view cannot be a gradient, since optimizers that
/// set gradients to zero detach them in place.
torch::Tensor part_of(const torch::Tensor& flat, std::int64_t offset, at::IntArrayRef sizes) {
  auto* const at = static_cast<std::byte*>(flat.data_ptr()) +
                   static_cast<std::size_t>(offset) * flat.element_size();
  return torch::from_blob(
      at, sizes, [flat](void*) {}, flat.options());
}

double squares_of(const torch::Tensor& gradient) {
  const torch::Tensor dense = gradient.contiguous();
  const auto count = static_cast<std::size_t>(dense.numel());
  if (dense.scalar_type() != torch::kFloat64) {
    const torch::Tensor floats = dense.to(torch::kFloat32);
    return optimizer::sum_of_squares({floats.data_ptr<float>(), count});
  }
  const std::span values(dense.data_ptr<double>(), count);
  return std::inner_product(values.begin(), values.end(), values.begin(), 0.0);
}

bool is_at(const torch::Tensor& gradient, const torch::Tensor& place) {
  return gradient.data_ptr() == place.data_ptr() && gradient.is_contiguous();
}

}  // namespace

double clip_norm(const std::vector<NamedTensor>& trained, double most) {
  if (!(most > 0)) fail(ErrorCode::invalid, "a norm cannot be clipped to {}", most);
  const torch::NoGradGuard no_grad;
  double squares = 0;
  for (const NamedTensor& named : trained) {
    if (!named.tensor.grad().defined()) continue;
    squares += squares_of(named.tensor.grad());
  }
  const double norm = std::sqrt(squares);
  const double factor = most / (norm + kNormEpsilon);
  if (!(factor < 1)) return norm;
  for (const NamedTensor& named : trained) {
    if (named.tensor.grad().defined()) torch::Tensor(named.tensor.grad()).mul_(factor);
  }
  return norm;
}

GradientMemory::GradientMemory(const Group& group, const std::vector<NamedTensor>& trained) {
  if (trained.empty()) fail(ErrorCode::invalid, "there is no parameter that is trained");
  for (const NamedTensor& named : trained) {
    check_parameter(named);
    entries_.push_back({.name = named.name, .parameter = named.tensor, .flat = {}, .place = {}});
  }
  lay_out(group);
}

void GradientMemory::lay_out(const Group& group) {
  std::map<torch::ScalarType, std::int64_t> counts;
  for (Entry& entry : entries_) {
    std::int64_t& end = counts[entry.parameter.scalar_type()];
    entry.offset = end;
    end += aligned_count(entry.parameter);
  }
  std::map<torch::ScalarType, torch::Tensor> flat_of;
  for (const auto& [type, count] : counts) {
    flats_.push_back(group.empty({count}, type).zero_());
    flat_of[type] = flats_.back();
  }
  for (Entry& entry : entries_) {
    entry.flat = flat_of[entry.parameter.scalar_type()];
    const std::int64_t count = entry.parameter.numel();
    const std::int64_t padding = aligned_count(entry.parameter) - count;
    entry.place = part_of(entry.flat, entry.offset, entry.parameter.sizes());
    if (padding > 0) paddings_.push_back(entry.flat.narrow(0, entry.offset + count, padding));
  }
}

compression::CodecShape GradientMemory::shape_of(torch::ScalarType type) const {
  compression::CodecShape shape;
  for (const Entry& entry : entries_) {
    if (entry.parameter.scalar_type() != type) continue;
    shape.count = static_cast<std::size_t>(entry.offset + aligned_count(entry.parameter));
    if (entry.parameter.dim() < 2 || entry.parameter.numel() == 0) continue;
    const auto rows = static_cast<std::size_t>(entry.parameter.size(0));
    shape.matrices.push_back({.offset = static_cast<std::size_t>(entry.offset),
                              .rows = rows,
                              .columns = static_cast<std::size_t>(entry.parameter.numel()) / rows});
  }
  return shape;
}

void GradientMemory::collect(std::span<std::uint8_t> used) {
  const torch::NoGradGuard no_grad;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    Entry& entry = entries_[i];
    const torch::Tensor& gradient = entry.parameter.grad();
    used[i] = gradient.defined() ? 1 : 0;
    if (!gradient.defined()) {
      entry.place.zero_();
    } else if (gradient.layout() != torch::kStrided) {
      fail(ErrorCode::unsupported,
           "the gradient of {} is sparse, and only dense ones can be averaged: make its layer with "
           "sparse(false)",
           entry.name);
    } else if (!is_at(gradient, entry.place)) {
      entry.place.copy_(gradient);
    }
  }
  for (torch::Tensor& padding : paddings_) padding.zero_();
}

void GradientMemory::drop() {
  const torch::NoGradGuard no_grad;
  for (Entry& entry : entries_) entry.parameter.mutable_grad() = torch::Tensor();
  for (torch::Tensor& flat : flats_) flat.zero_();
}

// A tensor of its own every time: what a program does to the one it has (set_data, say) must not move
// the place.
void GradientMemory::give(std::span<const std::uint8_t> used) {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    Entry& entry = entries_[i];
    if (used[i] == 0) continue;
    const torch::Tensor& gradient = entry.parameter.grad();
    if (!gradient.defined() || !is_at(gradient, entry.place)) {
      entry.parameter.mutable_grad() = part_of(entry.flat, entry.offset, entry.parameter.sizes());
    }
  }
}

}  // namespace cohort::parallel
