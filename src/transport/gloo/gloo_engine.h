#pragma once

#include "transport/engine_table.h"

namespace cohort {

/// TCP between all ranks. See EngineRow.
std::unique_ptr<Engine> make_gloo_engine(const EngineOptions& options, const Peers& peers,
                                         Store& store, Deadline deadline);

}  // namespace cohort
