#pragma once

#include <cohort/loaded_model.h>

#include <string>
#include <vector>

namespace cohort {

/// What the output of a model says of each row of its input: the softmax over the classes, or the
/// values. Of sequences (rows × positions × classes) the last position, which says what comes next.
/// Throws Error(invalid) where it has not as many outputs as there are classes or values.
std::vector<Prediction> describe_output(const torch::Tensor& output, std::int64_t outputs,
                                        const std::vector<std::string>& class_names);

}  // namespace cohort
