#include "model/layers/window.h"

namespace cohort {

void require_image(const LayerPlan& layer) {
  if (layer.input.is_image()) return;
  fail_layer(layer, "it needs an image (channels x height x width), but gets {}",
             to_string(layer.input));
}

void slide_window(LayerPlan& layer, std::int64_t channels) {
  const auto& options = layer.options;
  require_positive(layer, "kernel", options.kernel, "it is the side of the window, 1 or more");
  require_positive(layer, "stride", options.stride, "it is the step of the window, 1 or more");
  if (options.padding < 0) {
    fail_layer(layer, "padding = {} is not possible; 0 or more is", options.padding);
  }
  const auto height = layer.input.sizes[1] + 2 * options.padding;
  const auto width = layer.input.sizes[2] + 2 * options.padding;
  if (options.kernel > height || options.kernel > width) {
    fail_layer(layer, "kernel {} is larger than its {}x{} input{}", options.kernel,
               layer.input.sizes[1], layer.input.sizes[2],
               options.padding > 0 ? fmt::format(" with padding {}", options.padding) : "");
  }
  layer.output.sizes = {channels, (height - options.kernel) / options.stride + 1,
                        (width - options.kernel) / options.stride + 1};
}

}  // namespace cohort
