#pragma once

#include <torch/torch.h>

#include <cstdint>

namespace cohort {

/// Multi-head scaled dot-product attention. `qkv` is [samples, positions, 3 * width]: the queries,
/// keys and values of all heads side by side, as one projection makes them. Returns
/// [samples, positions, width]. With `causal` a position sees itself and those before it.
///
/// Works on the projection in place, a head of a sample at a time, so that nothing is rearranged
/// and a head's scores stay in the cache.
torch::Tensor attend(const torch::Tensor& qkv, std::int64_t heads, bool causal);

}  // namespace cohort
