#pragma once

#include <gloo/transport/context.h>

#include <memory>

#include "cluster/store.h"
#include "transport/gloo/gloo.h"

namespace cohort {

/// Connects this rank with every other one; the ranks exchange their addresses through the store.
/// Throws Error naming the rank that could not be reached.
std::shared_ptr<::gloo::transport::Context> connect_gloo_mesh(int rank, int size, Store& store,
                                                              const GlooOptions& options);

}  // namespace cohort
