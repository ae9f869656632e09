#pragma once

#include <string>

namespace cohort {

/// Equal in two processes exactly when they can share memory and see each other's process ids: the
/// same boot of the same machine, in the same process and network namespaces.
std::string host_id();

/// The machine's name, for logs.
std::string host_name();

}  // namespace cohort
