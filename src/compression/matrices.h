#pragma once

#include "compression/codec.h"

namespace cohort {

/// What there is of the matrices within [begin, end) of their vector: of each the whole rows that
/// lie there, with offsets relative to `begin`.
std::vector<MatrixShape> matrices_within(const std::vector<MatrixShape>& all, std::size_t begin,
                                         std::size_t end);

}  // namespace cohort
