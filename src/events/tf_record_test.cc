#include "events/tf_record.h"

#include <gtest/gtest.h>

namespace cohort {
namespace {

TEST(TfRecord, MasksTheChecksum) {
  EXPECT_EQ(masked_crc32c("123456789"), 0xc78ab0e5u);
}

TEST(TfRecord, FramesDataByLengthAndChecksums) {
  std::string file = "before";
  append_record(file, "123456789");
  ASSERT_EQ(file.size(), 6u + 8 + 4 + 9 + 4);
  EXPECT_EQ(file.substr(0, 6), "before");
  EXPECT_EQ(file.substr(6, 8), std::string("\x09\0\0\0\0\0\0\0", 8));
  const std::uint32_t of_length = masked_crc32c(file.substr(6, 8));
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(static_cast<unsigned char>(file[14 + i]), (of_length >> (8 * i)) & 0xff);
  }
  EXPECT_EQ(file.substr(18, 9), "123456789");
  EXPECT_EQ(file.substr(27), "\xe5\xb0\x8a\xc7");
}

}  // namespace
}  // namespace cohort
