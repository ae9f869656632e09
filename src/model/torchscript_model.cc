#include <torch/script.h>

#include "base/fail.h"
#include "base/files.h"
#include "model/make_model.h"

namespace cohort::model {
namespace {

/// Only the first line of a torch message is shown: the rest is a stack trace.
[[noreturn]] void fail_to_read(const std::string& path, const std::string& message) {
  fail(ErrorCode::corrupt,
       "{} is not a TorchScript file that can be read ({}); torch.jit.script(model).save(\"…\") "
       "writes one",
       path, excerpt(message.substr(0, message.find('\n')), 200));
}

/// A scripted module as a Model. Parameters that require no gradient are not shown at all: nobody
/// trains them, and they stay as the file has them.
class TorchScriptModel : public Model {
 public:
  TorchScriptModel(torch::jit::Module module, std::string path)
      : module_(std::move(module)), path_(std::move(path)) {}

  torch::Tensor forward(const torch::Tensor& input) override {
    auto output = module_.forward({input});
    if (!output.isTensor()) {
      fail(ErrorCode::unsupported,
           "the model of {} returns a {}, but Cohort trains models that return one tensor", path_,
           output.tagKind());
    }
    return output.toTensor();
  }

  std::vector<NamedTensor> parameters() override {
    std::vector<NamedTensor> result;
    for (const auto& item : module_.named_parameters()) {
      if (item.value.requires_grad()) result.push_back({item.name, item.value});
    }
    return result;
  }

  std::vector<NamedTensor> buffers() override {
    std::vector<NamedTensor> result;
    for (const auto& item : module_.named_buffers()) result.push_back({item.name, item.value});
    return result;
  }

  void train(bool on) override { module_.train(on); }

 private:
  torch::jit::Module module_;
  std::string path_;
};

/// Torch's exceptions end here: what leaves is an Error that names the file.
torch::jit::Module load_module(const std::string& path) {
  try {
    const InputFile is_one(path);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::not_found) throw;
    fail(ErrorCode::not_found, "there is no TorchScript file {}", path);
  }
  try {
    return torch::jit::load(path);
  } catch (const c10::Error& error) {
    fail_to_read(path, error.what_without_backtrace());
  } catch (const std::exception& error) {
    // Torch's readers of archives and of Python's pickles throw others too.
    fail_to_read(path, error.what());
  }
}

}  // namespace

std::unique_ptr<Model> load_torchscript(const std::string& path) {
  auto model = std::make_unique<TorchScriptModel>(load_module(path), path);
  const auto parameters = model->parameters();
  if (parameters.empty()) {
    fail(ErrorCode::unsupported, "the model of {} has no parameter to train", path);
  }
  for (const auto& [name, tensor] : parameters) {
    if (tensor.scalar_type() != torch::kFloat) {
      fail(ErrorCode::unsupported, "parameter {} of {} is not float32", name, path);
    }
  }
  return model;
}

}  // namespace cohort::model
