#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "compression/codec.h"

namespace cohort::compression {

/// The codecs, a factory each, and the message that each makes of a vector of n floats. Others than
/// the files of this folder and their tests make codecs by name (make_codec in codec.h).
///
/// Numbers are little-endian and stand where they come, on no boundary. A message does not say what
/// it is: both sides make their codec of the same options and shape, which fix all lengths but
/// topk's. No operation is fused, so that every processor decodes a message to the same bits.
/// Blocks are BlockCodec::kBlock = 1024 floats, the last may have fewer.

/// "none": the floats as they are.
///
///   | f32 | f32 | … n of them
std::unique_ptr<Codec> make_plain_codec(std::size_t count);

/// Two bytes a float, rounded to the nearest, ties to even:
///
///   | u16 | u16 | … n of them
///
/// "fp16": IEEE half precision. Values beyond its range, infinity too, become its largest finite
/// value, 65504; those below 2^-25 become 0. NaN stays NaN.
std::unique_ptr<Codec> make_fp16_codec(std::size_t count);

/// "bf16": a float without its lower 16 bits. Infinity and NaN stay what they are.
std::unique_ptr<Codec> make_bf16_codec(std::size_t count);

/// What these two make of one float; for tests.
std::uint16_t to_fp16(float value);
float from_fp16(std::uint16_t half);
std::uint16_t to_bf16(float value);
float from_bf16(std::uint16_t half);

/// "int8": every block becomes a scale (its largest magnitude / 127) and a byte a float:
///
///   | f32 scale | i8 | i8 | … 1024 |   | f32 scale | i8 | …      float = scale * byte
///
/// A float between two steps of the scale goes up or down by chance, so that its expectation is
/// itself. Messages are the same for the same seed, place in the sequence of messages and floats.
/// Infinity counts as the largest finite float, NaN as 0, and so do blocks below 1e-30.
std::unique_ptr<Codec> make_int8_codec(std::size_t count, std::uint64_t seed);

/// "sign": every block becomes a scale (its mean magnitude) and a bit a float, set for negative
/// ones. Bit r of word w is of float 32 * r + w of the block; a last block that is shorter has all
/// its 32 words too:
///
///   | f32 scale | u32 word 0 | … | u32 word 31 |   | f32 scale | …      float = ±scale
///
/// Infinity counts as the largest finite float; NaN adds nothing to the mean.
std::unique_ptr<Codec> make_sign_codec(std::size_t count);

/// "topk": only the k = max(1, ceil(ratio * n)) values of largest magnitude travel, exactly; of
/// equal ones the first:
///
///   | u32 k | f32 value | … k of them, by ascending index | gap | … k of them |
///
/// A gap is the number of floats left out before this one, in 7 bits a byte, lowest first, the top
/// bit set on all bytes but a gap's last. Throws Error(invalid) for a ratio that is not above 0 and
/// at most 1, Error(unsupported) for more floats than 32 bits can number.
std::unique_ptr<Codec> make_topk_codec(std::size_t count, double ratio);

/// "lowrank": every matrix of the shape travels as two factors of `rank` columns, what is in no
/// matrix plain; see LowRank for the words:
///
///   | left factors of all matrices | right factors of all matrices | plain |      all f32
///
/// A matrix that holds a number that is not finite travels as zero.
std::unique_ptr<Codec> make_lowrank_codec(const CodecShape& shape, std::int64_t rank,
                                          std::uint64_t seed);

/// What all codecs check. Throws Error(invalid): the caller's vector is not as long as the codec's
/// shape says.
void check_count(std::string_view kind, std::size_t count, std::size_t expected);

/// Throws Error(corrupt) for a message of a length its codec never makes.
void check_length(std::string_view kind, std::size_t bytes, std::size_t expected);

}  // namespace cohort::compression
