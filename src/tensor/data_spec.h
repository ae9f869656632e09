#pragma once

#include <cstdint>
#include <vector>

namespace cohort {

/// What a model must know of the data to infer its sizes.
struct DataSpec {
  std::vector<std::int64_t> input_shape;  ///< Of one sample: {784}, {1, 28, 28}, {128} for tokens.
  bool tokens = false;                    ///< Inputs are int64 ids below `vocabulary`.
  std::int64_t vocabulary = 0;
  bool classes = true;  ///< Targets are int64 class ids; otherwise floats to be predicted.
  std::int64_t outputs =
      0;  ///< Number of classes, or of floats, to predict (per position of tokens).
};

}  // namespace cohort
