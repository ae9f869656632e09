#include <cohort/dataset.h>

#include "base/fail.h"
#include "data/batch_buffer.h"

namespace cohort {
namespace {

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

TensorDataset::TensorDataset(torch::Tensor input, torch::Tensor target)
    : input_(as_rows(input, "input")), target_(as_rows(target, "target")) {
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
  check_indices(indices, size());
  copy_rows(input_, indices, into.input);
  copy_rows(target_, indices, into.target);
}

}  // namespace cohort
