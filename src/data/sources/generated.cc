#include "data/sources/sources.h"

#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/integers.h"
#include "base/memory_room.h"
#include "base/names.h"
#include "base/random.h"
#include "data/datasets.h"

namespace cohort::data {
namespace {

// Where the job leaves features or classes at 0.
constexpr std::int64_t kDefaultFeatures = 16;
constexpr std::int64_t kDefaultBlobs = 4;

/// Throws unless `samples` rows of `features` floats, and what they are drawn from (a centre of
/// doubles for each class), fit into memory together.
void check_size(std::int64_t samples, std::int64_t features, std::int64_t classes) {
  const std::int64_t sample_bytes = 4, centre_bytes = 8;
  const auto drawn = checked_product(samples, features, sample_bytes);
  const auto centres = checked_product(classes, features, centre_bytes);
  const auto bytes = drawn && centres ? checked_sum(*drawn, *centres) : std::nullopt;
  if (!bytes) {
    fail(ErrorCode::invalid,
         "{} samples of {} features and {} classes are more than any memory can hold", samples,
         features, classes);
  }
  check_memory_room("generated data", static_cast<std::uint64_t>(*bytes));
}

/// Before validation samples are set aside.
struct Generated {
  std::shared_ptr<const Dataset> samples;
  tensor::DataSpec spec;
};

// Data for trials and tests, a function of the seed. Classes come in turns, so every stretch of
// samples has about as many of each; the noise of the options says how hard they are to tell apart.

/// Images of ten kinds, or fewer; see digits.cc.
Generated digits(const DataOptions& options, std::uint64_t seed) {
  if (options.features != 0 && options.features != 784) {
    fail(ErrorCode::invalid, "features is {}; digits have 28x28 pixels, leave it out",
         options.features);
  }
  if (options.classes > 10) {
    fail(ErrorCode::invalid, "classes is {}; there are 10 digits", options.classes);
  }
  const std::int64_t floats_in_pixels = 28 * 28 / 4;
  check_size(options.samples, floats_in_pixels, 1);
  Generated made;
  made.spec.input_shape = {1, 28, 28};
  made.spec.outputs = options.classes == 0 ? 10 : options.classes;
  made.samples = make_digits({.samples = options.samples,
                              .classes = made.spec.outputs,
                              .noise = options.noise,
                              .seed = seed});
  return made;
}

/// Every class is a cloud around a centre of its own in the cube from -1 to 1.
Generated blobs(const DataOptions& options, std::uint64_t seed) {
  const std::int64_t features = options.features == 0 ? kDefaultFeatures : options.features;
  const std::int64_t classes = options.classes == 0 ? kDefaultBlobs : options.classes;
  check_size(options.samples, features, classes);
  Random random(seed);
  std::vector<double> centres(static_cast<std::size_t>(classes * features));
  for (double& value : centres) value = random.uniform(-1, 1);

  torch::Tensor input = torch::empty({options.samples, features});
  torch::Tensor target = torch::empty({options.samples}, torch::kInt64);
  auto* value = input.data_ptr<float>();
  for (std::int64_t i = 0; i < options.samples; ++i) {
    const std::int64_t label = i % classes;
    target.data_ptr<std::int64_t>()[i] = label;
    for (std::int64_t f = 0; f < features; ++f) {
      const double centre = centres[static_cast<std::size_t>(label * features + f)];
      *value++ = static_cast<float>(centre + options.noise * random.normal());
    }
  }
  return {std::make_shared<TensorDataset>(input, target),
          {.input_shape = {features}, .classes = true, .outputs = classes}};
}

/// target = weights · input + offset + noise.
Generated regression(const DataOptions& options, std::uint64_t seed) {
  if (options.classes != 0) {
    fail(ErrorCode::invalid, "classes is {}; regression has none, leave it out", options.classes);
  }
  const std::int64_t features = options.features == 0 ? kDefaultFeatures : options.features;
  check_size(options.samples, features, 1);
  Random random(seed);
  std::vector<double> weights(static_cast<std::size_t>(features));
  for (double& weight : weights) weight = random.uniform(-1, 1);
  const double offset = random.uniform(-1, 1);

  torch::Tensor input = torch::empty({options.samples, features});
  torch::Tensor target = torch::empty({options.samples, 1});
  auto* value = input.data_ptr<float>();
  for (std::int64_t i = 0; i < options.samples; ++i) {
    double sum = offset + options.noise * random.normal();
    for (const double weight : weights) {
      *value = static_cast<float>(random.normal());
      sum += weight * *value++;
    }
    target.data_ptr<float>()[i] = static_cast<float>(sum);
  }
  return {std::make_shared<TensorDataset>(input, target),
          {.input_shape = {features}, .classes = false, .outputs = 1}};
}

/// What all three tasks ask of the options.
void check_generated(const DataOptions& options) {
  if (options.samples < 2) {
    fail(ErrorCode::invalid, "samples is {}; at least 2 are needed", options.samples);
  }
  if (options.features < 0) {
    fail(ErrorCode::invalid, "features is {}; it cannot be negative", options.features);
  }
  if (options.classes < 0 || options.classes == 1) {
    fail(ErrorCode::invalid, "classes is {}; at least 2 are needed", options.classes);
  }
  if (!(options.noise >= 0)) {
    fail(ErrorCode::invalid, "noise is {}; it cannot be negative", options.noise);
  }
  check_known("task of generated data", options.task, {"digits", "blobs", "regression"});
}

}  // namespace

// Sizes are checked before the split as well: an order of too many samples alone would fill memory.
LoadedData load_generated(const DataOptions& options, std::uint64_t seed) {
  check_generated(options);
  check_size(options.samples, 4, 1);  // Their order alone takes two numbers of 64 bits each.
  Split split = split_samples("generated data", options.samples, options.validation_fraction, seed);
  Generated made = options.task == "digits"  ? digits(options, seed)
                   : options.task == "blobs" ? blobs(options, seed)
                                             : regression(options, seed);
  LoadedData data;
  data.spec = std::move(made.spec);
  if (data.spec.classes) data.preprocessing.targets = Targets::counted(data.spec.outputs);
  if (options.task == "digits") data.preprocessing.input = ImageInput{.shape = {1, 28, 28}};
  data.train = std::make_shared<Subset>(made.samples, std::move(split.train));
  data.validation = std::make_shared<Subset>(made.samples, std::move(split.validation));
  return data;
}

}  // namespace cohort::data
