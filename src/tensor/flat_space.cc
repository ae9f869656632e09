#include "tensor/flat_space.h"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <utility>

namespace cohort::tensor {

// One trained parameter, and what layers and autograd reach its gradient by.
struct FlatSpace::Parameter {
  Parameter(torch::Tensor parameter, torch::Tensor gradient_view)
      : tensor(std::move(parameter)),
        sink(tensor, std::move(gradient_view)),
        accumulator(torch::autograd::impl::grad_accumulator(tensor)) {}

  torch::Tensor tensor;
  GradientSink sink;
  // Autograd keeps the accumulator, and with it our hook, only as long as somebody holds it.
  std::shared_ptr<torch::autograd::Node> accumulator;
  bool ready = false;  ///< Reported in this step.
};

// Runs after autograd has handled a parameter's gradient, also when a layer wrote it to the sink
// and autograd got none.
class FlatSpace::ReadyHook : public torch::autograd::FunctionPostHook {
 public:
  ReadyHook(FlatSpace& space, std::size_t index) : space_(space), index_(index) {}

  torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                            const torch::autograd::variable_list&) override {
    space_.gradient_arrived(index_);
    return outputs;
  }

 private:
  FlatSpace& space_;
  std::size_t index_;
};

FlatSpace::FlatSpace(Model& model, const FlatMemory& memory, Tables tables)
    : layout_(ModelLayout::of(model, tables)), memory_(memory) {
  const auto parameters = trained_parameters(model, tables);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const FlatEntry& entry = layout_.parameters.entries[i];
    torch::Tensor tensor = parameters[i].tensor;
    tensor.set_data(view_of(memory.parameters, entry));
    parameters_.push_back(std::make_unique<Parameter>(tensor, view_of(memory.gradients, entry)));
    parameters_.back()->accumulator->add_post_hook(std::make_unique<ReadyHook>(*this, i));
  }
  auto buffers = float_buffers(model);
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    buffers[i].tensor.set_data(view_of(memory.buffers, layout_.buffers.entries[i]));
  }
}

FlatSpace::~FlatSpace() = default;

const ModelLayout& FlatSpace::layout() const {
  return layout_;
}
const FlatMemory& FlatSpace::memory() const {
  return memory_;
}

void FlatSpace::on_gradient_ready(GradientReady callback) {
  on_ready_ = std::move(callback);
}

GradientSink& FlatSpace::sink(std::size_t index) {
  return parameters_[index]->sink;
}

const torch::Tensor& FlatSpace::parameter(std::size_t index) const {
  return parameters_[index]->tensor;
}

void FlatSpace::begin_step() {
  last_backward_ = false;
  for (auto& parameter : parameters_) {
    parameter->sink.begin_step();
    parameter->ready = false;
  }
}

void FlatSpace::begin_last_backward() {
  last_backward_ = true;
}

void FlatSpace::gradient_arrived(std::size_t index) {
  Parameter& parameter = *parameters_[index];
  torch::Tensor& gradient = parameter.tensor.mutable_grad();
  if (gradient.defined()) {
    parameter.sink.write(gradient);
    // Without a gradient of its own the parameter takes over autograd's next one, not adds it.
    gradient.reset();
  }
  if (last_backward_) report_ready(index);
}

void FlatSpace::report_ready(std::size_t index) {
  parameters_[index]->ready = true;
  if (on_ready_) on_ready_(index);
}

// A parameter may be written and not ready: where the last micro-batch did not use it. Where
// factors are kept, whoever asked for them writes the gradient.
void FlatSpace::finish_step() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    GradientSink& sink = parameters_[i]->sink;
    if (!sink.written() && !sink.keeps_factors()) sink.view().zero_();
    if (!parameters_[i]->ready) report_ready(i);
  }
}

}  // namespace cohort::tensor
