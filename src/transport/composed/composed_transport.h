#pragma once

#include <memory>
#include <vector>

#include "transport/transport.h"

namespace cohort {

/// One transport made of two between the same ranks: `inside` reaches those of this rank's host,
/// `outside` all others. A call that waits in one of them does not move bytes of the other, unless
/// that moves them by itself, as networks do: so `outside` must.
std::unique_ptr<Transport> compose_transports(std::unique_ptr<Transport> inside,
                                              std::unique_ptr<Transport> outside,
                                              std::vector<int> hosts);

}  // namespace cohort
