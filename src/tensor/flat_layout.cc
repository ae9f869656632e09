#include "tensor/flat_layout.h"

#include "base/fail.h"

namespace cohort {
namespace {

constexpr std::size_t kFloatsPerLine = 16;  // 64 bytes

std::size_t round_up(std::size_t count) {
  return (count + kFloatsPerLine - 1) / kFloatsPerLine * kFloatsPerLine;
}

}  // namespace

FlatLayout FlatLayout::of(const std::vector<NamedTensor>& tensors) {
  FlatLayout layout;
  for (const auto& [name, tensor] : tensors) {
    if (tensor.scalar_type() != torch::kFloat32 || tensor.layout() != torch::kStrided ||
        !tensor.device().is_cpu()) {
      fail(ErrorCode::unsupported,
           "parameter {} is {} on {}; Cohort trains dense float32 on the CPU", name,
           c10::toString(tensor.scalar_type()), tensor.device().str());
    }
    const auto count = static_cast<std::size_t>(tensor.numel());
    layout.entries.push_back({name, tensor.sizes().vec(), layout.size, count});
    layout.size += round_up(count);
  }
  return layout;
}

}  // namespace cohort
