#include "data/sources/sources.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "data/datasets.h"

namespace cohort::data {
namespace {

// Gathering may be slow (files, a network): a look at so many samples, some at a time, is enough to
// see all classes of an ordinary set.
constexpr std::int64_t kMostSamplesLookedAt = 10000;
constexpr std::int64_t kSamplesAtOnce = 256;

/// Whole numbers are ids of tokens or classes.
bool is_ids(const torch::Tensor& tensor) {
  return at::isIntegralType(tensor.scalar_type(), /*includeBool=*/false) &&
         tensor.scalar_type() != torch::kUInt8;  // Bytes are pixels.
}

/// The smallest id seen so far, or 0, and the largest.
struct Range {
  std::int64_t smallest = 0;
  std::int64_t largest = -1;

  void widen(const torch::Tensor& ids) {
    if (!is_ids(ids) || ids.numel() == 0) return;
    smallest = std::min(smallest, ids.min().item<std::int64_t>());
    largest = std::max(largest, ids.max().item<std::int64_t>());
  }

  /// How many ids there must be for the largest to be one.
  std::int64_t count(const char* what) const {
    if (smallest < 0) {
      fail(ErrorCode::invalid, "the dataset has the {} {}; they must count from 0", what, smallest);
    }
    return largest + 1;
  }
};

struct Ids {
  Range input;
  Range target;
};

/// Looks at all samples where that is cheap, or at some that are spread evenly.
Ids ids_of(const Dataset& dataset) {
  Ids ids;
  if (const auto* tensors = dynamic_cast<const TensorDataset*>(&dataset)) {
    ids.input.widen(tensors->input());
    ids.target.widen(tensors->target());
    return ids;
  }
  const std::int64_t samples = std::min(dataset.size(), kMostSamplesLookedAt);
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < samples; ++i) {
    indices.push_back(i * dataset.size() / samples);
    if (i + 1 < samples && std::ssize(indices) < kSamplesAtOnce) continue;
    const Batch batch = dataset.gather(indices);
    ids.input.widen(batch.input);
    ids.target.widen(batch.target);
    indices.clear();
  }
  return ids;
}

/// Shapes and types are those of the first sample; only ids need a look at others.
tensor::DataSpec spec_of(const Dataset& dataset, const DataOptions& options) {
  if (dataset.size() < 1) fail(ErrorCode::invalid, "the training set is empty");
  const std::int64_t first = 0;
  const Batch sample = dataset.gather({&first, 1});
  tensor::DataSpec spec;
  spec.input_shape = sample.input.sizes().slice(1).vec();
  spec.tokens = is_ids(sample.input);
  spec.classes = is_ids(sample.target);
  if (!spec.classes) spec.outputs = sample.target.dim() > 1 ? sample.target.size(-1) : 1;
  if (!spec.tokens && (!spec.classes || options.classes > 0)) {
    if (spec.classes) spec.outputs = options.classes;
    return spec;
  }
  const Ids ids = ids_of(dataset);
  if (spec.tokens) spec.vocabulary = ids.input.count("token");
  if (spec.classes) {
    spec.outputs = options.classes > 0 ? options.classes : ids.target.count("class");
  }
  // Targets of tokens are tokens: one that never begins a sequence can still be predicted.
  if (spec.tokens && spec.classes) spec.vocabulary = std::max(spec.vocabulary, spec.outputs);
  return spec;
}

}  // namespace

// Nothing is preprocessed: what the program's dataset gives is what the model gets.
LoadedData load_own_data(const DataOptions& options, std::uint64_t seed) {
  LoadedData data;
  data.spec = spec_of(*options.own_train, options);
  data.preprocessing.targets =
      data.spec.classes ? Targets::counted(data.spec.outputs) : Targets::values(data.spec.outputs);
  data.train = options.own_train;
  data.validation = options.own_validation;
  if (!data.validation) {
    Split split =
        split_samples("the dataset", data.train->size(), options.validation_fraction, seed);
    data.validation = std::make_shared<Subset>(data.train, std::move(split.validation));
    data.train = std::make_shared<Subset>(data.train, std::move(split.train));
  }
  return data;
}

}  // namespace cohort::data
