#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace cohort {

/// Checksums of what is written to disk: checkpoints, artefacts, TensorBoard files. CRC-32C is the
/// one that TensorBoard's format asks for and that processors compute at the speed of memory. It
/// finds damage, not forgery. Both functions may be called by any thread.

/// The CRC-32C (Castagnoli) of `bytes`, by the processor's own instruction where it has one. `seed`
/// is the checksum of what came before: crc32c(b, crc32c(a)) is the checksum of a and b together.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t seed = 0);

/// The same number without special instructions: for other processors, and to check the fast one.
std::uint32_t crc32c_by_table(std::span<const std::byte> bytes, std::uint32_t seed = 0);

}  // namespace cohort
