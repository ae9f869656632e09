#include "data/datasets.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/fail.h"
#include "data/sampler.h"

namespace cohort::data {
namespace {

/// A program's tensor as this dataset keeps it: on the CPU, without gaps, apart from autograd.
torch::Tensor as_rows(const torch::Tensor& tensor, const char* which) {
  if (!tensor.defined()) fail(ErrorCode::invalid, "the {} tensor is not defined", which);
  if (tensor.dim() == 0)
    fail(ErrorCode::invalid, "the {} tensor has no rows: it is one number", which);
  if (!tensor.device().is_cpu()) {
    fail(ErrorCode::invalid, "the {} tensor is on {}; it must be on the CPU", which,
         tensor.device().str());
  }
  return tensor.detach().contiguous();
}

}  // namespace

// Batches come over and over in the same shape, the last of an epoch in a smaller one: resize_()
// keeps the memory for both.
void fit_buffer(torch::Tensor& buffer, std::size_t rows, at::IntArrayRef sample_shape,
                at::ScalarType type) {
  c10::SmallVector<std::int64_t, 5> shape{static_cast<std::int64_t>(rows)};
  shape.append(sample_shape.begin(), sample_shape.end());
  if (!buffer.defined() || buffer.scalar_type() != type || !buffer.is_contiguous()) {
    buffer = torch::empty(shape, type);
  } else if (buffer.sizes() != at::IntArrayRef(shape)) {
    buffer.resize_(shape);
  }
}

void check_indices(std::span<const std::int64_t> indices, std::int64_t samples) {
  for (const std::int64_t index : indices) {
    if (index < 0 || index >= samples) {
      fail(ErrorCode::invalid, "there is no sample {} in a dataset of {}", index, samples);
    }
  }
}

// Of any type: rows are bytes.
void copy_rows(const torch::Tensor& from, std::span<const std::int64_t> indices,
               torch::Tensor& buffer) {
  fit_buffer(buffer, indices.size(), from.sizes().slice(1), from.scalar_type());
  const std::size_t row_bytes =
      from.size(0) == 0 ? 0 : from.nbytes() / static_cast<std::size_t>(from.size(0));
  const auto* source = static_cast<const std::byte*>(from.data_ptr());
  auto* target = static_cast<std::byte*>(buffer.data_ptr());
  for (const std::int64_t index : indices) {
    std::memcpy(target, source + static_cast<std::size_t>(index) * row_bytes, row_bytes);
    target += row_bytes;
  }
}

ByteImages::ByteImages(torch::Tensor pixels, torch::Tensor labels)
    : pixels_(std::move(pixels)), labels_(std::move(labels)) {}

Batch ByteImages::gather(std::span<const std::int64_t> indices) const {
  Batch batch;
  gather_into(indices, batch);
  return batch;
}

// Indices are checked before anything is written: a wrong one leaves the batch as it was.
// Pixels stay bytes in memory, a quarter of their size as floats, and become floats on their way
// into the batch, by the scaling that the model was told of.
void ByteImages::gather_into(std::span<const std::int64_t> indices, Batch& into) const {
  check_indices(indices, size());
  fit_buffer(into.input, indices.size(), pixels_.sizes().slice(1), torch::kFloat32);
  copy_rows(labels_, indices, into.target);
  const auto image = static_cast<std::size_t>(pixels_.stride(0));
  const auto* bytes = pixels_.data_ptr<std::uint8_t>();
  auto* floats = into.input.data_ptr<float>();
  for (const std::int64_t index : indices) {
    scaling_.scale(bytes + static_cast<std::size_t>(index) * image, floats, image);
    floats += image;
  }
}

Subset::Subset(std::shared_ptr<const Dataset> whole, std::vector<std::int64_t> samples)
    : whole_(std::move(whole)), samples_(std::move(samples)) {}

// Indices of the subset to those of the whole.
std::vector<std::int64_t> Subset::in_whole(std::span<const std::int64_t> indices) const {
  check_indices(indices, size());
  std::vector<std::int64_t> mapped;
  mapped.reserve(indices.size());
  for (const std::int64_t index : indices) {
    mapped.push_back(samples_[static_cast<std::size_t>(index)]);
  }
  return mapped;
}

Batch Subset::gather(std::span<const std::int64_t> indices) const {
  return whole_->gather(in_whole(indices));
}

void Subset::gather_into(std::span<const std::int64_t> indices, Batch& into) const {
  whole_->gather_into(in_whole(indices), into);
}

void check_validation_fraction(double fraction) {
  if (!(fraction > 0 && fraction < 1)) {
    fail(ErrorCode::invalid, "validation_fraction is {}; it must be above 0 and below 1", fraction);
  }
}

// Both parts ascend, so validation samples are looked at in the order of the file.
// Which samples are set aside is drawn by the seed, from an order that no epoch has. They stay the
// same whatever the batch, the strategy and the number of workers, and when the job is resumed.
Split split_samples(const std::string& source, std::int64_t samples, double fraction,
                    std::uint64_t seed) {
  check_validation_fraction(fraction);
  if (samples < 2) {
    fail(ErrorCode::invalid,
         "{} has {} sample{}; at least 2 are needed, as one is set aside for validation", source,
         samples, samples == 1 ? "" : "s");
  }
  const auto wanted = static_cast<std::int64_t>(std::llround(samples * fraction));
  const std::int64_t aside = std::clamp<std::int64_t>(wanted, 1, samples - 1);
  const std::vector<std::int64_t> order =
      GlobalOrder(samples, seed).epoch(-1);  // No epoch's order.
  Split split{{order.begin() + aside, order.end()}, {order.begin(), order.begin() + aside}};
  std::sort(split.train.begin(), split.train.end());
  std::sort(split.validation.begin(), split.validation.end());
  return split;
}

std::vector<std::int64_t> all_rows(std::int64_t samples) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(samples));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

}  // namespace cohort::data

// Public (cohort/dataset.h).
namespace cohort {

TensorDataset::TensorDataset(torch::Tensor input, torch::Tensor target)
    : input_(data::as_rows(input, "input")), target_(data::as_rows(target, "target")) {
  if (input_.size(0) != target_.size(0)) {
    fail(ErrorCode::invalid, "the input tensor has {} rows and the target tensor {}",
         input_.size(0), target_.size(0));
  }
}

Batch TensorDataset::gather(std::span<const std::int64_t> indices) const {
  Batch batch;
  gather_into(indices, batch);
  return batch;
}

void TensorDataset::gather_into(std::span<const std::int64_t> indices, Batch& into) const {
  data::check_indices(indices, size());
  data::copy_rows(input_, indices, into.input);
  data::copy_rows(target_, indices, into.target);
}

}  // namespace cohort
