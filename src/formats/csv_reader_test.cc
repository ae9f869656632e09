// Records are the same through a window of any size as from the whole text; what is no CSV is refused
// with its line, and thousands of injured texts do no harm.

#include "formats/csv_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/fail.h"
#include "base/mutate_test_support.h"

namespace cohort::formats {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;
using Fields = std::vector<std::string>;

class CsvReaderTest : public testing::Test {
 protected:
  std::filesystem::path write(const std::string& content) {
    std::ofstream(path_, std::ios::binary) << content;
    return path_;
  }

  std::vector<Fields> read(const std::string& content) {
    CsvReader reader(write(content));
    std::vector<Fields> records;
    for (Fields fields; reader.next(fields);) records.push_back(fields);
    return records;
  }

  const TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_.path() / "data.csv";
};

TEST_F(CsvReaderTest, CutsRecordsIntoFields) {
  EXPECT_THAT(read("a, b ,c\r\n\n1,\"x, \"\"y\"\"\",\n"),
              ElementsAre(Fields{"a", "b", "c"}, Fields{"1", "x, \"y\"", ""}));
  EXPECT_THAT(read("\xef\xbb\xbflast"), ElementsAre(Fields{"last"}));
  EXPECT_TRUE(read("").empty());
  EXPECT_TRUE(read("\r\n\n").empty());
}

TEST_F(CsvReaderTest, RefusesWhatIsNoCsvWithItsLine) {
  EXPECT_THAT([&] { read("a\n\"b\n"); },
              ThrowsMessage<Error>(HasSubstr("line 2: a quote is opened and never closed")));
  EXPECT_THAT([&] { read("\"a\" b\n"); },
              ThrowsMessage<Error>(HasSubstr("line 1: there is text after a closing quote")));
  EXPECT_THAT([&] { read(std::string("a\n\0b\n", 5)); },
              ThrowsMessage<Error>(HasSubstr("line 2: there is a NUL byte")));
}

// The first field moves all that follows, so that the window ends at every byte of a record once.
TEST_F(CsvReaderTest, AWindowReadsWhatTheWholeFileHas) {
  const std::string quoted = "\"a\"\"\r\n,\",plain,\"b\"\r\n\n";
  const Fields fields_of_quoted = {"a\"\r\n,", "plain", "b"};
  for (std::size_t shift = 1; shift <= quoted.size(); ++shift) {
    std::string content = "\xef\xbb\xbf" + std::string(shift, 'x') + "\n";
    int records = 0;
    for (; content.size() < (600 << 10); ++records) content += quoted;
    CsvReader reader(write(content));
    Fields fields;
    ASSERT_TRUE(reader.next(fields));
    ASSERT_EQ(fields, Fields{std::string(shift, 'x')});
    for (int i = 0; i < records; ++i) {
      ASSERT_TRUE(reader.next(fields));
      ASSERT_EQ(fields, fields_of_quoted) << "shift " << shift << " line " << reader.line();
      ASSERT_EQ(reader.line(), 2 + 3 * i);
    }
    EXPECT_FALSE(reader.next(fields));
  }
}

TEST_F(CsvReaderTest, ARecordWithoutAnEndIsRefusedInLittleMemory) {
  std::filesystem::resize_file(write("a,b\n1,\""), (TextWindow::kMostBytes << 2) + 1);
  CsvReader reader(path_);
  Fields fields;
  ASSERT_TRUE(reader.next(fields));
  EXPECT_THAT([&] { reader.next(fields); },
              ThrowsMessage<Error>(HasSubstr("data.csv line 2: it does not end within 64 MiB")));
}

TEST_F(CsvReaderTest, AnyInjuredTextIsReadOrRefused) {
  Random random(3);
  for (int i = 0; i < 1000; ++i) {
    try {
      read(mutated("a,b,c\n1,2.5,x\n\"7\",\"8\r\n\"\"\",\"x\"\n", random, ",\"\n\r\0 "));
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("data.csv line"));
    }
  }
}

}  // namespace
}  // namespace cohort::formats
