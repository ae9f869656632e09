#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cohort {

/// The checksum as TFRecord files store it: turned and shifted, so that the checksum of data that
/// contains checksums stays a good one.
std::uint32_t masked_crc32c(std::string_view bytes);

/// Appends one record: length (u64), masked checksum of the length (u32), data, masked checksum of
/// the data (u32), all little endian.
void append_record(std::string& file, std::string_view data);

}  // namespace cohort
