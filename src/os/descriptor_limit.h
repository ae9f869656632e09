#pragma once

#include <cstddef>

namespace cohort {

/// Lets this process, and those it starts from now on, open as many files as the system allows
/// them. (Soft limits are low for the sake of programs that use select(), which this one does not;
/// every worker watches each of its peers by a descriptor.) Returns how many that is.
std::size_t raise_descriptor_limit();

}  // namespace cohort
