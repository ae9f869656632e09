#pragma once

#include "compression/codec.h"

namespace cohort {

/// Two bytes a float, rounded to the nearest, ties to even. Bit for bit the same on every
/// processor.

/// "fp16": IEEE half precision. Values beyond its range, infinity too, become its largest finite
/// value, 65504; those below 2^-25 become 0. NaN stays NaN.
std::unique_ptr<Codec> make_fp16_codec(std::size_t count);

/// "bf16": a float without its lower 16 bits. Infinity and NaN stay what they are.
std::unique_ptr<Codec> make_bf16_codec(std::size_t count);

std::uint16_t to_fp16(float value);
float from_fp16(std::uint16_t half);
std::uint16_t to_bf16(float value);
float from_bf16(std::uint16_t half);

}  // namespace cohort
