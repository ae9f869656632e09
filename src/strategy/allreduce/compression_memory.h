#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collective/compressed/gradient_exchange.h"
#include "tensor/training_state.h"

namespace cohort {

/// What a worker with compressed gradients leaves in TrainingState::own for the next one.
struct CompressionMemory {
  std::string compression;  ///< The kind in use; empty while auto still tries.
  bool is_auto = false;     ///< It was picked by trying.
  ExchangeMemory exchange;
  /// The same in case the step it was at is done: others may have come to its end.
  std::optional<ExchangeMemory> if_done = {};

  OwnMemory as_own() const;

  /// Of what as_own() made; nothing where there is none, or it is something else.
  static std::optional<CompressionMemory> read(const TrainingState* state);
};

}  // namespace cohort
