#pragma once

#include <memory>
#include <vector>

#include "model/layers/layer.h"

namespace cohort {

/// The same function with fewer passes over memory. Results and gradients stay what they were:
///
///   linear, relu    the linear layer cuts its own output while it is in the cache
///   relu, maxpool   the pool cuts what it chose: max(relu(x)) = relu(max(x)), on a quarter of the
///                   values, and the gradient of a value that ReLU cut is 0 either way
///   conv2d, relu    (also after batch norm and residual) ReLU overwrites its input, which the
///                   layer before does not look at again
///
/// Layers that were absorbed are left out of the result; they have no parameters.
std::vector<std::shared_ptr<Layer>> fuse_layers(std::vector<std::shared_ptr<Layer>> layers);

}  // namespace cohort
