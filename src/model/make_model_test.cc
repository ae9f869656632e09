// Proves that every preset and type of layer makes a model that runs forward and back, with torch's
// names, first weights and numbers (against torch::nn::Sequential); that whatever is wrong with a
// network is said by number and shape before a tensor is made; and what a sample costs.
#include "model/make_model.h"

#include <gmock/gmock.h>

#include "base/fail.h"
#include "model/functions/function_test_support.h"
#include "model/layers/layer.h"

namespace cohort::model {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;

const tensor::DataSpec kDigits{.input_shape = {1, 28, 28}, .outputs = 10};
const tensor::DataSpec kText{.input_shape = {16}, .tokens = true, .vocabulary = 30, .outputs = 30};

std::int64_t count_parameters(Model& model) {
  std::int64_t count = 0;
  for (const auto& [name, tensor] : model.parameters()) count += tensor.numel();
  return count;
}

std::vector<std::string> names(const std::vector<NamedTensor>& tensors) {
  std::vector<std::string> result;
  for (const auto& [name, tensor] : tensors) result.push_back(name);
  return result;
}

std::string error_of(const std::vector<LayerOptions>& layers,
                     const tensor::DataSpec& spec = kDigits) {
  try {
    make_model({.layers = layers}, spec, 1);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid);
    return error.what();
  }
  return "no error";
}

torch::Tensor input_for(const tensor::DataSpec& spec, std::int64_t rows) {
  auto sizes = spec.input_shape;
  sizes.insert(sizes.begin(), rows);
  torch::manual_seed(3);
  return spec.tokens ? torch::randint(spec.vocabulary, sizes, torch::kLong) : torch::randn(sizes);
}

struct PresetCase {
  std::string preset;
  tensor::DataSpec spec;
  std::int64_t parameters;
};

class Preset : public testing::TestWithParam<PresetCase> {};

TEST_P(Preset, HasItsSizeAndTrainsOnAnyNumberOfRows) {
  const auto& [preset, spec, parameters] = GetParam();
  const auto model = make_model({.preset = preset}, spec, 1);
  EXPECT_EQ(count_parameters(*model), parameters);
  for (const std::int64_t rows : {3, 1, 0}) {
    std::vector<std::int64_t> expected = {rows, spec.outputs};
    if (spec.tokens) expected.insert(expected.begin() + 1, spec.input_shape[0]);
    const auto output = model->forward(input_for(spec, rows));
    EXPECT_EQ(output.sizes().vec(), expected);
    output.square().sum().backward();
    for (const auto& [name, tensor] : model->parameters()) {
      EXPECT_TRUE(tensor.grad().defined() && tensor.grad().isfinite().all().item<bool>()) << name;
    }
    model->train(false);
    EXPECT_EQ(model->forward(input_for(spec, rows)).sizes().vec(), expected);
    model->train(true);
  }
}

const tensor::DataSpec kColour{.input_shape = {3, 32, 32}, .outputs = 10};
INSTANTIATE_TEST_SUITE_P(
    All, Preset,
    testing::Values(PresetCase{"mlp", kDigits, 535818}, PresetCase{"lenet", kDigits, 421642},
                    PresetCase{"resnet8", kDigits, 77562}, PresetCase{"resnet8", kColour, 77850},
                    PresetCase{"gpt-mini", kText, 3179038}),
    [](const auto& tested) { return "n" + std::to_string(tested.param.parameters); });

TEST(MakeModel, StartsWithTorchsWeightsNamedAsInSequential) {
  const auto model = make_model({.preset = "lenet"}, kDigits, 5);
  torch::manual_seed(5);
  namespace nn = torch::nn;
  nn::Sequential theirs;
  theirs->push_back(nn::Conv2d(nn::Conv2dOptions(1, 32, 3).padding(1)));
  theirs->push_back(nn::ReLU());
  theirs->push_back(nn::MaxPool2d(2));
  theirs->push_back(nn::Conv2d(nn::Conv2dOptions(32, 64, 3).padding(1)));
  theirs->push_back(nn::ReLU());
  theirs->push_back(nn::MaxPool2d(2));
  theirs->push_back(nn::Flatten());
  theirs->push_back(nn::Linear(3136, 128));
  theirs->push_back(nn::ReLU());
  theirs->push_back(nn::Linear(128, 10));
  const auto parameters = model->parameters();
  ASSERT_EQ(parameters.size(), theirs->parameters().size());
  for (const auto& [name, tensor] : parameters) {
    EXPECT_TRUE(tensor.equal(theirs->named_parameters()[name])) << name;
  }

  const auto input = input_for(kDigits, 4);
  const auto output = model->forward(input), expected = theirs->forward(input);
  expect_close(output, expected);
  output.square().sum().backward();
  expected.square().sum().backward();
  for (const auto& [name, tensor] : parameters) {
    SCOPED_TRACE(name);
    expect_close(tensor.grad(), theirs->named_parameters()[name].grad());
  }
}

TEST(MakeModel, WeightsAreAFunctionOfTheSeed) {
  const auto weights = [](std::uint64_t seed) {
    return make_model({.preset = "mlp", .hidden = {8}}, kDigits, seed)->parameters()[0].tensor;
  };
  EXPECT_TRUE(weights(1).equal(weights(1)));
  EXPECT_FALSE(weights(1).equal(weights(2)));
}

TEST(MakeModel, AProjectionTakesTheStrideThatFits) {
  for (const std::int64_t stride : {1, 2, 3, 5, 27, 28}) {
    const LayerOptions conv{.type = "conv2d", .out = 2, .kernel = 1, .stride = stride};
    const auto model = make_model({.layers = {{.type = "residual", .layers = {conv}},
                                              {.type = "flatten"},
                                              {.type = "linear"}}},
                                  kDigits, 1);
    EXPECT_EQ(model->forward(input_for(kDigits, 2)).size(1), 10) << stride;
  }
}

TEST(MakeModel, NestedLayersAreNamedByTheirPlace) {
  const LayerOptions branch{
      .type = "residual",
      .layers = {{.type = "conv2d", .out = 4, .stride = 2, .padding = 1}, {.type = "batchnorm"}}};
  const auto model = make_model(
      {.layers = {branch, {.type = "relu"}, {.type = "flatten"}, {.type = "linear"}}}, kDigits, 1);
  EXPECT_THAT(names(model->parameters()),
              ElementsAre("0.0.weight", "0.0.bias", "0.1.weight", "0.1.bias", "0.projection.weight",
                          "3.weight", "3.bias"));
  EXPECT_THAT(names(model->buffers()), ElementsAre("0.1.running_mean", "0.1.running_var"));
  model->forward(input_for(kDigits, 2)).sum().backward();
}

TEST(MakeModel, DropoutIsOnlyInTraining) {
  const auto model = make_model(
      {.layers = {{.type = "flatten"}, {.type = "linear"}, {.type = "dropout"}}}, kDigits, 1);
  const auto input = input_for(kDigits, 20);
  EXPECT_GT((model->forward(input) == 0).sum().item<int>(), 50);
  model->train(false);
  EXPECT_EQ((model->forward(input) == 0).sum().item<int>(), 0);
}

TEST(MakeModel, EveryLayerTypeRunsWithAndWithoutRows) {
  const LayerOptions out{.type = "linear"}, flat{.type = "flatten"};
  const std::vector<std::vector<LayerOptions>> on_images = {
      {{.type = "maxpool", .kernel = 3, .stride = 2, .padding = 1}, {.type = "tanh"}, flat, out},
      {{.type = "relu"}, {.type = "maxpool", .kernel = 3}, {.type = "layernorm"}, flat, out},
      {{.type = "avgpool", .kernel = 4}, {.type = "sigmoid"}, flat, {.type = "batchnorm"}, out},
      {flat, {.type = "gelu"}, {.type = "dropout", .p = 0.1}, {.type = "layernorm"}, out},
      {flat,
       {.type = "residual", .layers = {{.type = "linear", .out = 6}, {.type = "relu"}}},
       out}};
  const std::vector<LayerOptions> on_text = {
      {.type = "embedding", .out = 8, .vocabulary = 40},
      {.type = "transformer", .heads = 2, .p = 0.2},
      {.type = "residual", .layers = {{.type = "linear", .out = 12, .bias = false}}},
      out};
  for (const std::int64_t rows : {2, 0}) {
    for (const auto& layers : on_images) {
      const auto model = make_model({.layers = layers}, kDigits, 1);
      model->forward(input_for(kDigits, rows)).sum().backward();
    }
    const auto model = make_model({.layers = on_text}, kText, 1);
    model->forward(input_for(kText, rows)).sum().backward();
  }
}

TEST(LayerErrors, NameTheLayerTheShapeAndWhatWouldBeValid) {
  const LayerOptions conv{.type = "conv2d", .out = 4, .kernel = 5};
  const LayerOptions pool{.type = "maxpool", .kernel = 4};
  const LayerOptions flat{.type = "flatten"}, out{.type = "linear"};
  EXPECT_EQ(error_of({pool, {.type = "maxpool"}, conv}),
            "layer 3 (conv2d): kernel 5 is larger than its 3x3 input");
  EXPECT_EQ(
      error_of({out}),
      "layer 1 (linear): it needs a flat input, but gets 1x28x28; put a flatten layer before it");
  EXPECT_EQ(error_of({flat, {.type = "linear", .out = 12}}),
            "the network ends in 12 outputs but the data has 10 classes");
  EXPECT_THAT(error_of({conv}), HasSubstr("ends in the shape 4x24x24"));
  EXPECT_THAT(
      error_of({flat, conv}),
      HasSubstr("layer 2 (conv2d): it needs an image (channels x height x width), but gets 784"));
  EXPECT_THAT(error_of({{.type = "conv2d"}}), HasSubstr("layer 1 (conv2d): out = 0"));
  EXPECT_THAT(error_of({{.type = "dropout", .p = 1.0}}), HasSubstr("layer 1 (dropout): p = 1"));
  EXPECT_THAT(error_of({{.type = "residual", .layers = {{.type = "relu"}, {.type = "linear"}}}}),
              HasSubstr("layer 1.2 (linear):"));
  EXPECT_THAT(error_of({{.type = "residual", .layers = {flat}}}),
              HasSubstr("layer 1 (residual): its branch turns 1x28x28 into 784"));
  EXPECT_THAT(error_of({{.type = "embedding", .out = 4}}), HasSubstr("needs tokens"));
  EXPECT_THAT(error_of({out}, kText), HasSubstr("put an embedding layer before it"));
  EXPECT_THAT(error_of({{.type = "embedding", .out = 4, .vocabulary = 7}}, kText),
              HasSubstr("the data has 30 different tokens"));
  EXPECT_THAT(
      error_of({{.type = "embedding", .out = 9}, {.type = "transformer", .heads = 2}}, kText),
      HasSubstr("layer 2 (transformer): its width 9 cannot be divided by heads = 2"));
  EXPECT_THAT(error_of({{.type = "linaer"}}), AllOf(HasSubstr("layer 1"), HasSubstr("\"linear\"")));
}

/// Sizes of which no product may be taken that has no room in a number, nor any memory.
TEST(LayerErrors, SizesThatNoMachineHoldsAreRefusedByTheirLayer) {
  constexpr std::int64_t kWide = 1 << 24;
  const LayerOptions flat{.type = "flatten"}, wide{.type = "linear", .out = kWide};
  const LayerOptions padded{.type = "conv2d", .out = kWide, .kernel = 1, .padding = 1 << 16};
  EXPECT_THAT(error_of({flat, wide, wide}), HasSubstr("layer 3 (linear): its weights"));
  EXPECT_THAT(error_of({padded}), HasSubstr("layer 1 (conv2d): its output"));
  EXPECT_THAT(error_of({{.type = "residual", .layers = {padded}}}),
              HasSubstr("layer 1.1 (conv2d)"));
  EXPECT_THAT(error_of({{.type = "embedding", .out = kWide, .vocabulary = 1 << 30}}, kText),
              HasSubstr("layer 1 (embedding): its weights"));
  EXPECT_THAT(error_of({{.type = "embedding", .out = kWide}, {.type = "transformer"}}, kText),
              HasSubstr("layer 2 (transformer): its weights"));
}

TEST(LayerErrors, AModelLargerThanTheMemoryIsRefusedBeforeItIsMade) {
  const std::vector<LayerOptions> layers = {{.type = "flatten"},
                                            {.type = "linear", .out = 1 << 20},
                                            {.type = "linear", .out = 1 << 20},
                                            {.type = "linear"}};
  try {
    make_model({.layers = layers}, kDigits, 1);
    FAIL() << "a model of 4 TiB was made";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::no_space);
    EXPECT_THAT(error.what(), HasSubstr("the model with its 1100344197120 parameters would take"));
  }
}

TEST(LayerTable, ListsTypesAndKeys) {
  EXPECT_THAT(layer_types(), IsSupersetOf({"linear", "conv2d", "batchnorm", "transformer"}));
  EXPECT_THAT(layer_keys("linear"), ElementsAre("out", "bias"));
  EXPECT_THROW(layer_keys("nothing"), Error);
}

TEST(MakeModel, WantsExactlyOneSource) {
  EXPECT_THROW(make_model({}, kDigits, 1), Error);
  EXPECT_THROW(make_model({.preset = "mlp", .torchscript = "x.pt"}, kDigits, 1), Error);
  EXPECT_THROW(make_model({.preset = "lenett"}, kDigits, 1), Error);
  EXPECT_THROW(make_model({.preset = "lenet"}, kText, 1), Error);
  EXPECT_THROW(make_model({.preset = "gpt-mini"}, kDigits, 1), Error);
}

TEST(MakeModel, CallsAProgramsOwnFunctionWithTorchSeeded) {
  ModelOptions options;
  options.make = [] { return wrap(std::make_shared<torch::nn::LinearImpl>(784, 10)); };
  const auto first = make_model(options, kDigits, 3), second = make_model(options, kDigits, 3);
  EXPECT_TRUE(first->parameters()[0].tensor.equal(second->parameters()[0].tensor));
}

const tensor::DataSpec kWords{.input_shape = {16}, .tokens = true, .vocabulary = 50, .outputs = 50};

TEST(MultiplyAdds, OfLinearLayersAreTheirWeights) {
  EXPECT_EQ(multiply_adds({.preset = "mlp", .hidden = {256}}, kDigits), 784.0 * 256 + 256 * 10);
}

TEST(MultiplyAdds, AConvolutionsWeightsCountAtEveryPixel) {
  const ModelOptions model{.layers = {{.type = "conv2d", .out = 8, .kernel = 3},
                                      {.type = "relu"},
                                      {.type = "flatten"},
                                      {.type = "linear", .out = 10}}};
  EXPECT_EQ(multiply_adds(model, kDigits), 9.0 * 8 * 26 * 26 + 8 * 26 * 26 * 10.0);
}

TEST(MultiplyAdds, ABranchCountsAndATableOfWordsDoesNot) {
  const ModelOptions plain{
      .layers = {{.type = "conv2d", .out = 8, .kernel = 1},
                 {.type = "residual", .layers = {{.type = "conv2d", .out = 8, .kernel = 1}}},
                 {.type = "flatten"},
                 {.type = "linear", .out = 10}}};
  EXPECT_EQ(multiply_adds(plain, kDigits), (8.0 + 64 + 8 * 10) * 28 * 28);
  const ModelOptions words{
      .layers = {{.type = "embedding", .out = 4}, {.type = "linear", .out = 50}}};
  EXPECT_EQ(multiply_adds(words, kWords), 4.0 * 50 * 16);
}

TEST(MultiplyAdds, OfAProgramsOwnModelAreNotKnown) {
  EXPECT_EQ(multiply_adds({.make = [] { return nullptr; }}, kDigits), std::nullopt);
  EXPECT_EQ(multiply_adds({.torchscript = "model.pt"}, kDigits), std::nullopt);
}

}  // namespace
}  // namespace cohort::model
