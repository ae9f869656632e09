#pragma once

#include <span>

namespace cohort {

/// Whether none is infinite or not a number. Numbers that came from another process are looked at
/// before they are added to anything: one of them would spread over the whole model, and nothing
/// takes it out again.
bool all_finite(std::span<const float> values);

}  // namespace cohort
