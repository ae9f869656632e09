#include "model/layers/fuse_layers.h"

#include "model/layers/relu_layer.h"

namespace cohort {

std::vector<std::shared_ptr<Layer>> fuse_layers(std::vector<std::shared_ptr<Layer>> layers) {
  std::vector<std::shared_ptr<Layer>> result;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    auto* relu = dynamic_cast<ReluLayer*>(layers[i].get());
    if (relu != nullptr) {
      if (i + 1 < layers.size() && layers[i + 1]->absorb_relu_before()) continue;
      if (!result.empty() && result.back()->absorb_relu_after()) continue;
      if (!result.empty() && result.back()->output_may_be_overwritten()) relu->work_in_place();
    }
    result.push_back(std::move(layers[i]));
  }
  return result;
}

}  // namespace cohort
