// Proves that IDX files are read and every way they can be broken is named, and that generated data
// is a function of its seed and can be learned (a linear model trains on it).
#include <cohort/error.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "base/fail.h"
#include "base/files.h"
#include "data/batch_loader.h"
#include "data/datasets.h"
#include "data/load_data.h"

namespace cohort::data {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using Shape = std::vector<std::int64_t>;

Batch all_of(const Dataset& dataset) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(dataset.size()));
  std::iota(indices.begin(), indices.end(), 0);
  return dataset.gather(indices);
}

std::string idx(std::uint32_t magic, const std::vector<std::uint32_t>& shape,
                const std::string& values) {
  std::string bytes;
  const auto put = [&](std::uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
  };
  put(magic);
  for (const std::uint32_t size : shape) put(size);
  return bytes + values;
}

class Mnist : public testing::Test {
 protected:
  Mnist() {
    options.path = folder_.path().string();
    write("train-images-idx3-ubyte", idx(0x803, {3, 2, 2},
                                         std::string("\0\xff\x80\x01"
                                                     "abcdefgh",
                                                     12)));
    write("train-labels-idx1-ubyte", idx(0x801, {3}, std::string("\x07\0\x09", 3)));
    write("t10k-images-idx3-ubyte", idx(0x803, {1, 2, 2}, "wxyz"));
    write("t10k-labels-idx1-ubyte", idx(0x801, {1}, "\x05"));
  }

  void write(const std::string& name, const std::string& content) {
    std::ofstream(folder_.path() / name, std::ios::binary) << content;
  }
  void remove(const std::string& name) { std::filesystem::remove(folder_.path() / name); }

  void expect_error(ErrorCode code, const std::string& message) {
    try {
      load_data(options, 1);
      ADD_FAILURE() << "nothing thrown, expected: " << message;
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), fmt::format(fmt::runtime(message), options.path));
      EXPECT_EQ(error.code(), code);
    }
  }

  TemporaryFolder folder_;
  DataOptions options;
};

TEST_F(Mnist, ReadsIdxFiles) {
  const auto data = load_data(options, 1);
  EXPECT_EQ(data.spec.input_shape, (Shape{1, 2, 2}));
  EXPECT_EQ(data.spec.outputs, 10);
  EXPECT_TRUE(data.spec.classes);
  EXPECT_EQ(data.note, "");
  const Batch train = all_of(*data.train);
  EXPECT_EQ(train.input.sizes(), (Shape{3, 1, 2, 2}));
  EXPECT_TRUE(train.target.equal(torch::tensor({7, 0, 9})));
  const auto expected = (torch::tensor({0.f, 255.f, 128.f, 1.f}) / 255 - 0.1307) / 0.3081;
  EXPECT_TRUE(train.input[0].flatten().allclose(expected, 1e-6, 1e-6));
  EXPECT_EQ(data.validation->size(), 1);
}

TEST_F(Mnist, SaysWhatIsBroken) {
  write("train-images-idx3-ubyte", idx(0x803, {3, 2, 2}, "12345678"));
  expect_error(ErrorCode::corrupt,
               "{}/train-images-idx3-ubyte is truncated: its header announces 3x2x2 values, so 28 "
               "bytes were expected, but it has 24");
  write("train-images-idx3-ubyte", idx(0x803, {1, 2, 2}, "12345678"));
  expect_error(ErrorCode::corrupt,
               "{}/train-images-idx3-ubyte is too long: its header announces 1x2x2 values, so 20 "
               "bytes were expected, but it has 24");
  write("train-images-idx3-ubyte", idx(0x803, {0xffffffff, 0xffffffff, 0xffffffff}, "12345678"));
  expect_error(ErrorCode::corrupt,
               "{}/train-images-idx3-ubyte is truncated: its header announces "
               "4294967295x4294967295x4294967295 values, so far more bytes were expected, but it "
               "has 24");
  write("train-images-idx3-ubyte", "12345");
  expect_error(
      ErrorCode::corrupt,
      "{}/train-images-idx3-ubyte is truncated: its header alone takes 16 bytes, it has 5");
  write("train-images-idx3-ubyte", "");
  expect_error(
      ErrorCode::corrupt,
      "{}/train-images-idx3-ubyte is truncated: its header alone takes 16 bytes, it has 0");
  write("train-images-idx3-ubyte", idx(0x801, {12, 2, 2}, "123"));
  expect_error(ErrorCode::corrupt,
               "{}/train-images-idx3-ubyte is not an IDX file of 3 dimensions: it begins with "
               "0x00000801, expected 0x00000803");
}

TEST_F(Mnist, ComparesImagesAndLabels) {
  write("train-images-idx3-ubyte", idx(0x803, {2, 2, 2}, "12345678"));
  expect_error(ErrorCode::corrupt,
               "{0}/train-images-idx3-ubyte has 2 images, but {0}/train-labels-idx1-ubyte has 3 "
               "labels");
  write("train-images-idx3-ubyte", idx(0x803, {3, 1, 2}, "123456"));
  expect_error(ErrorCode::corrupt, "{}: the images to train and to validate on differ in size");
  write("train-labels-idx1-ubyte", idx(0x801, {3}, "\x01\x02\x0a"));
  expect_error(ErrorCode::corrupt,
               "{}/train-labels-idx1-ubyte: the label of sample 2 is 10, expected 0 to 9");
  write("train-images-idx3-ubyte", idx(0x803, {0, 2, 2}, ""));
  expect_error(ErrorCode::corrupt, "{}/train-images-idx3-ubyte has no images");
}

TEST_F(Mnist, AMissingFileIsAnErrorButNoneMeansGeneratedDigits) {
  remove("train-labels-idx1-ubyte");
  remove("t10k-images-idx3-ubyte");
  expect_error(ErrorCode::not_found,
               "{} has train-images-idx3-ubyte, t10k-labels-idx1-ubyte but not "
               "train-labels-idx1-ubyte, t10k-images-idx3-ubyte; `cohort data mnist` fetches all "
               "of MNIST");
  remove("train-images-idx3-ubyte");
  remove("t10k-labels-idx1-ubyte");
  const auto data = load_data(options, 1);
  EXPECT_EQ(data.note, fmt::format("no MNIST in {}: training on generated digits instead; "
                                   "`cohort data mnist` fetches it",
                                   options.path));
  EXPECT_EQ(data.spec.input_shape, (Shape{1, 28, 28}));
  EXPECT_EQ(data.train->size(), 12000);
  EXPECT_EQ(data.validation->size(), 2000);
  const std::int64_t first = 0;
  EXPECT_FALSE(
      data.train->gather({&first, 1}).input.equal(data.validation->gather({&first, 1}).input));
}

// ---- generated ----

class GeneratedData : public testing::Test {
 protected:
  GeneratedData() { options.kind = "generated"; }
  DataOptions options;
};

double accuracy_of_a_linear_model(const LoadedData& data, int epochs) {
  torch::manual_seed(1);
  const auto features = all_of(*data.train).input[0].numel();
  const auto weights = torch::zeros({features, data.spec.outputs}).requires_grad_();
  const auto bias = torch::zeros({data.spec.outputs}).requires_grad_();
  torch::optim::SGD optimizer({weights, bias}, torch::optim::SGDOptions(0.02).momentum(0.9));
  BatchLoader loader(data.train, {.seed = 1, .batch = 64});
  for (LoadedBatch loaded = loader.next(); loaded.epoch < epochs; loaded = loader.next()) {
    optimizer.zero_grad();
    const auto output = loaded.batch.input.flatten(1).mm(weights) + bias;
    torch::nn::functional::cross_entropy(output, loaded.batch.target).backward();
    optimizer.step();
  }
  const Batch all = all_of(*data.validation);
  const auto guess = (all.input.flatten(1).mm(weights) + bias).argmax(1);
  return (guess == all.target).to(torch::kFloat32).mean().item<double>();
}

TEST_F(GeneratedData, DigitsCanBeLearned) {
  options.samples = 4000;
  const auto data = load_data(options, 3);
  EXPECT_EQ(data.spec.input_shape, (Shape{1, 28, 28}));
  EXPECT_EQ(data.train->size(), 3600);
  const Batch all = all_of(*data.train);
  EXPECT_EQ(all.input.sizes(), (Shape{3600, 1, 28, 28}));
  EXPECT_NEAR(all.input.mean().item<double>(), 0, 0.3);  // MNIST's own scale fits.
  EXPECT_NEAR(all.input.std().item<double>(), 1, 0.3);
  EXPECT_GT(accuracy_of_a_linear_model(data, 3), 0.8);
}

TEST_F(GeneratedData, IsAFunctionOfTheSeed) {
  options.samples = 50;
  for (const char* task : {"digits", "blobs", "regression"}) {
    options.task = task;
    const auto one = all_of(*load_data(options, 1).train);
    const auto same = all_of(*load_data(options, 1).train);
    const auto other = all_of(*load_data(options, 2).train);
    EXPECT_TRUE(one.input.equal(same.input));
    EXPECT_TRUE(one.target.equal(same.target));
    EXPECT_FALSE(one.input.equal(other.input));
  }
}

TEST_F(GeneratedData, BlobsAreApart) {
  options.task = "blobs";
  options.samples = 1000;
  options.features = 5;
  options.classes = 3;
  const auto data = load_data(options, 1);
  EXPECT_EQ(data.spec.input_shape, Shape{5});
  EXPECT_EQ(data.spec.outputs, 3);
  EXPECT_GT(accuracy_of_a_linear_model(data, 10), 0.95);
}

TEST_F(GeneratedData, RegressionIsLinearUpToNoise) {
  options.task = "regression";
  options.samples = 2000;
  options.features = 4;
  const auto data = load_data(options, 1);
  EXPECT_FALSE(data.spec.classes);
  EXPECT_EQ(data.spec.outputs, 1);
  const Batch all = all_of(*data.train);
  const auto rows = torch::cat({all.input, torch::ones({all.input.size(0), 1})}, 1);
  const auto weights = torch::linalg::inv(rows.t().mm(rows)).mm(rows.t().mm(all.target));
  const double left = (rows.mm(weights) - all.target).std().item<double>();
  EXPECT_NEAR(left, 0.1, 0.01);
}

TEST_F(GeneratedData, SaysWhatIsWrong) {
  const auto expect = [&](const DataOptions& wrong, const char* message) {
    EXPECT_THAT([&] { load_data(wrong, 1); }, ThrowsMessage<Error>(HasSubstr(message)));
  };
  DataOptions wrong = options;
  wrong.samples = 1;
  expect(wrong, "samples is 1; at least 2 are needed");
  wrong = options;
  wrong.task = "blob";
  expect(wrong, "task of generated data \"blob\" is unknown; did you mean \"blobs\"?");
  wrong = options;
  wrong.classes = 11;
  expect(wrong, "classes is 11; there are 10 digits");
  wrong.classes = 1;
  expect(wrong, "classes is 1; at least 2 are needed");
  wrong = options;
  wrong.features = 10;
  expect(wrong, "features is 10; digits have 28x28 pixels");
  wrong = options;
  wrong.noise = -1;
  expect(wrong, "noise is -1; it cannot be negative");
  wrong = options;
  wrong.validation_fraction = 1.5;
  expect(wrong, "validation_fraction is 1.5; it must be above 0 and below 1");
  wrong = options;
  wrong.task = "regression";
  wrong.classes = 3;
  expect(wrong, "classes is 3; regression has none");
}

}  // namespace
}  // namespace cohort::data
