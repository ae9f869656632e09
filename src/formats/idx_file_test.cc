// A header must be true of the file it stands in, before anything is mapped; injured files do no harm.

#include "formats/idx_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "base/fail.h"
#include "base/files.h"
#include "base/mutate_test_support.h"

namespace cohort::formats {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

class IdxFileTest : public testing::Test {
 protected:
  std::filesystem::path write(const std::string& content) {
    std::filesystem::remove(path_);
    std::ofstream(path_, std::ios::binary) << content;
    return path_;
  }

  void refuses(const std::string& content, const std::string& words) {
    EXPECT_THAT([&] { IdxFile(write(content), 2); }, ThrowsMessage<Error>(HasSubstr(words)));
  }

  const TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_.path() / "images";
  const std::string good_ = std::string("\0\0\x08\x02\0\0\0\x02\0\0\0\x03", 12) + "abcdef";
};

TEST_F(IdxFileTest, HasAShapeAndAByteAValue) {
  const IdxFile file(write(good_), 2);
  EXPECT_THAT(file.shape(), ElementsAre(2, 3));
  ASSERT_EQ(file.values().size(), 6u);
  EXPECT_EQ(file.values()[5], std::byte{'f'});
}

TEST_F(IdxFileTest, IsRefusedWhereHeaderAndLengthDisagree) {
  refuses("", "is truncated: its header alone takes 12 bytes, it has 0");
  refuses(good_.substr(0, 11), "its header alone takes 12 bytes, it has 11");
  refuses(good_.substr(0, 17), "is truncated: its header announces 2x3 values");
  refuses(good_ + "g", "is too long");
  refuses("\x01" + good_.substr(1), "is not an IDX file of 2 dimensions");
  refuses(good_.substr(0, 4) + std::string(8, '\xff'), "far more");
}

TEST_F(IdxFileTest, AnyInjuredFileIsMappedOrRefused) {
  Random random(8);
  for (int i = 0; i < 1000; ++i) {
    try {
      const IdxFile file(write(mutated(good_, random, "abc")), 2);
      EXPECT_EQ(static_cast<std::int64_t>(file.values().size()), file.shape()[0] * file.shape()[1]);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::corrupt);
    }
  }
}

}  // namespace
}  // namespace cohort::formats
