// Proves that a TorchScript file is trained like any other model, and that a missing, broken or
// empty one is named. The files are written by torch itself, into a temporary folder.
#include <gmock/gmock.h>
#include <torch/script.h>

#include "base/fail.h"
#include "base/files.h"
#include "model/make_model.h"

namespace cohort::model {
namespace {

ErrorCode error_code(const std::string& path) {
  try {
    load_torchscript(path);
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr(path));
    return error.code();
  }
  ADD_FAILURE() << path << " was loaded";
  return ErrorCode::cancelled;
}

TEST(TorchScript, IsTrainedAsAnyOtherModel) {
  TemporaryFolder folder;
  const auto path = (folder.path() / "net.pt").string();
  {
    torch::manual_seed(1);
    torch::jit::Module net("Net");
    net.register_parameter("weight", torch::randn({3, 4}).requires_grad_(), false);
    net.register_buffer("offset", torch::ones({3}));
    net.register_buffer("steps", torch::zeros({1}, torch::kLong));
    net.register_attribute("training", torch::jit::BoolType::get(), true);
    net.define(R"(
      def forward(self, input):
          return torch.matmul(input, self.weight.t()) + self.offset
    )");
    net.save(path);
  }
  const auto model = load_torchscript(path);
  model->train(true);
  const auto parameters = model->parameters();
  ASSERT_EQ(parameters.size(), 1U);
  EXPECT_EQ(parameters[0].name, "weight");
  EXPECT_EQ(model->buffers().size(), 2U);

  const auto output = model->forward(torch::ones({2, 4}));
  EXPECT_EQ(output.sizes(), (std::vector<std::int64_t>{2, 3}));
  output.sum().backward();
  EXPECT_TRUE(parameters[0].tensor.grad().equal(torch::full({3, 4}, 2.0F)));
}

TEST(TorchScript, SaysWhatIsWrongWithAFile) {
  TemporaryFolder folder;
  EXPECT_EQ(error_code((folder.path() / "nothing.pt").string()), ErrorCode::not_found);

  const auto broken = folder.path() / "broken.pt";
  write_file_atomically(broken, "not a model");
  EXPECT_EQ(error_code(broken.string()), ErrorCode::corrupt);

  const auto empty = (folder.path() / "empty.pt").string();
  torch::jit::Module net("Empty");
  net.define("def forward(self, input):\n    return input\n");
  net.save(empty);
  EXPECT_EQ(error_code(empty), ErrorCode::unsupported);
}

}  // namespace
}  // namespace cohort::model
