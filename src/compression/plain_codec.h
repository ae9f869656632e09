#pragma once

#include "compression/codec.h"

namespace cohort {

/// "none": the floats as they are.
std::unique_ptr<Codec> make_plain_codec(std::size_t count);

}  // namespace cohort
