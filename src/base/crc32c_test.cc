#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <random>
#include <string_view>
#include <vector>

namespace cohort {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::vector<std::byte> random_bytes(std::size_t count) {
  std::mt19937 random(7);
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

TEST(Crc32c, GivesThePublishedValues) {
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xe3069283u);
  EXPECT_EQ(crc32c({}), 0u);
  // The examples of RFC 3720, B.4.
  EXPECT_EQ(crc32c(std::vector<std::byte>(32, std::byte{0x00})), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::vector<std::byte>(32, std::byte{0xff})), 0x62a8ab43u);
}

TEST(Crc32c, TheTableAgreesWithTheInstructionAtEveryLengthAndAlignment) {
  const std::vector<std::byte> bytes = random_bytes(100);
  for (std::size_t begin = 0; begin < 9; ++begin) {
    for (std::size_t count = 0; begin + count <= bytes.size(); ++count) {
      const auto part = std::span(bytes).subspan(begin, count);
      ASSERT_EQ(crc32c(part, 5), crc32c_by_table(part, 5)) << begin << "+" << count;
    }
  }
}

TEST(Crc32c, ContinuesFromTheChecksumOfWhatCameBefore) {
  const std::vector<std::byte> bytes = random_bytes(1000);
  const auto whole = std::span<const std::byte>(bytes);
  for (const std::size_t cut : {0, 1, 7, 500, 999, 1000}) {
    EXPECT_EQ(crc32c(whole.subspan(cut), crc32c(whole.first(cut))), crc32c(whole)) << cut;
  }
}

}  // namespace
}  // namespace cohort
