#include "model/multiply_adds.h"

#include <gtest/gtest.h>

namespace cohort {
namespace {

DataSpec image_spec() {
  DataSpec spec;
  spec.input_shape = {1, 28, 28};
  spec.outputs = 10;
  return spec;
}

DataSpec token_spec() {
  DataSpec spec;
  spec.input_shape = {16};
  spec.tokens = true;
  spec.vocabulary = 50;
  spec.outputs = 50;
  return spec;
}

TEST(MultiplyAdds, OfLinearLayersAreTheirWeights) {
  EXPECT_EQ(multiply_adds({.preset = "mlp", .hidden = {256}}, image_spec()),
            784.0 * 256 + 256 * 10);
}

TEST(MultiplyAdds, AConvolutionsWeightsCountAtEveryPixel) {
  const ModelOptions model{.layers = {{.type = "conv2d", .out = 8, .kernel = 3},
                                      {.type = "relu"},
                                      {.type = "flatten"},
                                      {.type = "linear", .out = 10}}};
  EXPECT_EQ(multiply_adds(model, image_spec()), 9.0 * 8 * 26 * 26 + 8 * 26 * 26 * 10.0);
}

TEST(MultiplyAdds, ABranchCountsAndATableOfWordsDoesNot) {
  const ModelOptions plain{
      .layers = {{.type = "conv2d", .out = 8, .kernel = 1},
                 {.type = "residual", .layers = {{.type = "conv2d", .out = 8, .kernel = 1}}},
                 {.type = "flatten"},
                 {.type = "linear", .out = 10}}};
  EXPECT_EQ(multiply_adds(plain, image_spec()), (8.0 + 64 + 8 * 10) * 28 * 28);
  const ModelOptions words{
      .layers = {{.type = "embedding", .out = 4}, {.type = "linear", .out = 50}}};
  EXPECT_EQ(multiply_adds(words, token_spec()), 4.0 * 50 * 16);
}

TEST(MultiplyAdds, OfAProgramsOwnModelAreNotKnown) {
  EXPECT_EQ(multiply_adds({.make = [] { return nullptr; }}, image_spec()), std::nullopt);
  EXPECT_EQ(multiply_adds({.torchscript = "model.pt"}, image_spec()), std::nullopt);
}

}  // namespace
}  // namespace cohort
