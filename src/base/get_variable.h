#pragma once

#include <functional>

namespace cohort {

/// Returns a variable of the environment, or nullptr. Functions that read the environment take one,
/// so that tests can have an environment of their own.
using GetVariable = std::function<const char*(const char* name)>;

}  // namespace cohort
