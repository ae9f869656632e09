#pragma once

#include <cohort/data_parallel.h>

#include <vector>

#include "parallel/step_turns.h"

namespace cohort::parallel {

/// What the ranks' copies of a model have in common beside gradients.

/// Throws Error(invalid), in the same words on all ranks, which all call it, where their tensors are
/// not the same (how many, names, types, shapes, and whether they are trained), or their options: with
/// others they would wait for each other in different calls.
void check_same_model(const Group& group, const std::vector<NamedTensor>& parameters,
                      const std::vector<NamedTensor>& buffers, const DataParallelOptions& options);

/// Every tensor once, by its first name: tied ones have several.
std::vector<NamedTensor> each_once(std::vector<NamedTensor> tensors);

/// The values of all ranks' tensors, which may be of any type, become those of `root`.
void share_values(const Group& group, const std::vector<NamedTensor>& tensors, int root);

/// As DataParallelOptions::Buffers says: the mean over the ranks by their weights (where nobody has a
/// row they stay as they are), or the values of the lowest rank that takes part. What is the same
/// number on all ranks stays that number. `buffers` are each_once().
void share_buffers(const Group& group, const std::vector<NamedTensor>& buffers,
                   DataParallelOptions::Buffers how, const Weights& weights);

}  // namespace cohort::parallel
