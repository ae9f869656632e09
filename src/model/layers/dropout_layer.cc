#include "model/layers/dropout_layer.h"

#include "model/functions/dropout_mask.h"
#include "model/layers/layer_table.h"

namespace cohort {

torch::Tensor DropoutLayer::forward(const torch::Tensor& input) {
  if (!is_training() || p_ == 0) return input;
  return drop_elements(input, DropoutMask::of_this_step(number_, p_));
}

void check_dropout_share(LayerPlan& layer, double default_p) {
  if (!layer.options.p) layer.options.p = default_p;
  if (!(*layer.options.p >= 0 && *layer.options.p < 1)) {
    fail_layer(layer, "p = {} is not possible; the share to drop is 0 or more and below 1",
               *layer.options.p);
  }
}

namespace {

void plan_dropout(LayerPlan& layer, const DataSpec&) {
  require_embedded(layer);
  check_dropout_share(layer, 0.5);
}

std::shared_ptr<Layer> build_dropout(const LayerPlan& layer) {
  return std::make_shared<DropoutLayer>(layer.number, *layer.options.p);
}

}  // namespace

LayerType dropout_type() {
  return {"dropout", {"p"}, plan_dropout, build_dropout};
}

}  // namespace cohort
