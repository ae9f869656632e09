#pragma once

#include <memory>
#include <vector>

#include "transport/transport.h"

namespace cohort {

/// The endpoints of a group of `size` ranks that are threads of this process; element r is rank
/// r's. They share their state, so they may be destroyed in any order, each by its own thread.
///
/// Small messages are copied when they are sent. Large ones are copied once, straight from the
/// sender's bytes to the receiver's, so waiting for such a send waits for the peer to receive.
/// What was sent (and waited for) before a close can still be received after it.
std::vector<std::unique_ptr<Transport>> make_inproc_group(int size);

}  // namespace cohort
