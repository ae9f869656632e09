#pragma once

#include "model/layers/layer_plan.h"

namespace cohort {

/// Fails unless the layer gets an image.
void require_image(const LayerPlan& layer);

/// Checks kernel, stride and padding of a layer that slides a window over an image, and sets its
/// output to `channels` x height x width.
void slide_window(LayerPlan& layer, std::int64_t channels);

}  // namespace cohort
