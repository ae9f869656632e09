#pragma once

#include <memory>
#include <vector>

#include "transport/transport.h"

namespace cohort {

/// One transport made of two between the same ranks: `inside` reaches those of this rank's host,
/// `outside` all others. `outside` must move its bytes by itself, as networks do, since nobody
/// helps it while a call waits in `inside`; the other way round a second thread waits while this
/// one helps.
std::unique_ptr<Transport> compose_transports(std::unique_ptr<Transport> inside,
                                              std::unique_ptr<Transport> outside,
                                              std::vector<int> hosts);

}  // namespace cohort
