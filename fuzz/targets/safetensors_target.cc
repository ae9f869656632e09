// Safetensors files: headers that lie, and what is asked of a file that was found right.

#include "base/fail.h"
#include "checkpoint/safetensors.h"
#include "targets.h"

namespace cohort::fuzz {

void safetensors(Bytes input) {
  const FileOf file(input);
  const auto read = checkpoint::read_safetensors(file.path());
  for (const checkpoint::StoredTensor& tensor : read.tensors()) {
    require(tensor.begin <= tensor.end && tensor.end <= input.size(), "values are in the file");
    if (tensor.dtype == checkpoint::SafetensorsDtype::f32) (void)read.floats(tensor.name);
    if (tensor.dtype == checkpoint::SafetensorsDtype::f64) (void)read.doubles(tensor.name);
    if (tensor.dtype == checkpoint::SafetensorsDtype::i64) (void)read.integers(tensor.name);
  }
}

Seeds safetensors_seeds() {
  const std::vector<float> floats = {1, 2, 3, 4, 5, 6};
  const std::vector<std::int64_t> numbers = {7};
  const checkpoint::TensorView tensors[] = {{"weight", {2, 3}, std::span(floats)},
                                            {"count", {}, std::span(numbers)}};
  std::string text;
  checkpoint::write_safetensors([&](std::string_view bytes) { text += bytes; }, "seed", tensors,
                                {{"format", "words"}});
  std::string none;
  checkpoint::write_safetensors([&](std::string_view bytes) { none += bytes; }, "seed", {});
  return {text, none};
}

}  // namespace cohort::fuzz
