#pragma once

#include <torch/torch.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cohort {

/// A tensor and the name it has in checkpoints and exports.
struct NamedTensor {
  std::string name;
  torch::Tensor tensor;
};

/// What Cohort needs of a network: its tensors, and an output for an input.
class Model {
 public:
  virtual ~Model() = default;

  virtual torch::Tensor forward(const torch::Tensor& input) = 0;

  /// Float32 tensors, in the same order in every process. Those that require no gradient are
  /// frozen.
  virtual std::vector<NamedTensor> parameters() = 0;

  /// State that is not trained (running means and such), in the same order in every process.
  virtual std::vector<NamedTensor> buffers() = 0;

  /// Training mode on or off, as torch::nn::Module::train.
  virtual void train(bool on) = 0;
};

/// Any torch::nn::Module with `Tensor forward(Tensor)` as a Model.
template <class Net>
class ModuleModel : public Model {
 public:
  explicit ModuleModel(std::shared_ptr<Net> net) : net_(std::move(net)) {}

  torch::Tensor forward(const torch::Tensor& input) override { return net_->forward(input); }
  std::vector<NamedTensor> parameters() override { return named(net_->named_parameters()); }
  std::vector<NamedTensor> buffers() override { return named(net_->named_buffers()); }
  void train(bool on) override { net_->train(on); }

 private:
  static std::vector<NamedTensor> named(
      const torch::OrderedDict<std::string, torch::Tensor>& tensors) {
    std::vector<NamedTensor> result;
    for (const auto& item : tensors) result.push_back({item.key(), item.value()});
    return result;
  }

  std::shared_ptr<Net> net_;
};

/// The Model of a user's own module: `cohort::wrap(std::make_shared<Net>())`.
template <class Net>
std::unique_ptr<Model> wrap(std::shared_ptr<Net> net) {
  return std::make_unique<ModuleModel<Net>>(std::move(net));
}

}  // namespace cohort
