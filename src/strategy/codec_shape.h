#pragma once

#include <span>

#include "compression/codec.h"
#include "tensor/flat_layout.h"

namespace cohort {

/// What a codec must know of vectors with this layout: which parts of them are matrices. Tensors of
/// more dimensions count as matrices of as many rows as their first has.
CodecShape codec_shape(const FlatLayout& layout);

/// Makes the floats between the tensors zero again: some codecs (sign) know no zero, and what
/// stands there would be sent again and again.
void clear_padding(const FlatLayout& layout, std::span<float> values);

}  // namespace cohort
