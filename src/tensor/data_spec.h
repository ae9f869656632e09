#pragma once

#include <cstdint>
#include <vector>

namespace cohort::tensor {

/// What a model must know of the data to infer its sizes. Loading data fills it in (LoadedData),
/// the plan of a network starts and ends with it (plan_network), and model.json stores it.
///
///   data                        input_shape    tokens  classes  outputs
///   784 numbers, 10 classes     {784}          no      yes      10
///   grey images, 10 classes     {1, 28, 28}    no      yes      10
///   numbers, one to predict     {16}           no      no       1
///   text, 128 characters        {128}          yes     yes      the vocabulary, at each position
struct DataSpec {
  /// Of one sample; the batch dimension is left out.
  std::vector<std::int64_t> input_shape;
  /// Inputs are int64 ids below `vocabulary`; otherwise they are floats.
  bool tokens = false;
  std::int64_t vocabulary = 0;  ///< Only of tokens.
  /// Targets are int64 class ids below `outputs`; otherwise floats to be predicted.
  bool classes = true;
  /// How many classes, or how many floats, to predict (of tokens: at each position).
  std::int64_t outputs = 0;
};

}  // namespace cohort::tensor
