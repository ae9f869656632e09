#include "events/tf_record.h"

#include <bit>
#include <span>

#include "base/crc32c.h"

namespace cohort {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written as they stand");

constexpr std::uint32_t kMaskShift = 0xa282ead8;

template <class Number>
std::string_view bytes_of(const Number& number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

}  // namespace

std::uint32_t masked_crc32c(std::string_view bytes) {
  return std::rotr(crc32c(std::as_bytes(std::span(bytes))), 15) + kMaskShift;
}

void append_record(std::string& file, std::string_view data) {
  const std::uint64_t length = data.size();
  file += bytes_of(length);
  file += bytes_of(masked_crc32c(bytes_of(length)));
  file += data;
  file += bytes_of(masked_crc32c(data));
}

}  // namespace cohort
