// Lines of LIBSVM files, and the numbers of all rows (raw_text.h).
#include "formats/sparse_row.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/fail.h"
#include "base/mutate_test_support.h"

namespace cohort::formats {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

SparseRow read_line(const std::string& text) {
  SparseRow row;
  read_sparse_row(text, {"f", 7}, row);
  return row;
}

TEST(SparseRow, HasALabelAndEntriesThatAscend) {
  const SparseRow row = read_line(" -1\t1:0.5  300:+2 # words");
  EXPECT_EQ(row.label, "-1");
  ASSERT_EQ(row.entries.size(), 2u);
  EXPECT_EQ(row.entries[0].column, 0);
  EXPECT_EQ(row.entries[1].column, 299);
  EXPECT_EQ(row.entries[1].value, 2.0F);
  EXPECT_EQ(read_line("3:1").label, "");
  SparseRow none;
  EXPECT_FALSE(read_sparse_row("  # nothing", {"f", 1}, none));
}

TEST(SparseRow, IsRefusedWithItsPlace) {
  const auto refuses = [](const std::string& text, const std::string& words) {
    EXPECT_THAT([&] { read_line(text); }, ThrowsMessage<Error>(HasSubstr("f line 7: " + words)));
  };
  refuses("x 1:1", "the label \"x\" is not a number");
  refuses("1 2", "\"2\" is not of the form index:value");
  refuses("1 2:", "\"2:\" is not of the form index:value");
  refuses("1 :2", "\":2\" is not of the form index:value");
  refuses("1 0:2", "index 0 comes after 0");
  refuses("1 2:2 2:1", "index 2 comes after 2");
  refuses("1 99999999999999999999:1", "\"99999999999999999999:1\" is not of the form");
  refuses("1 16777217:1", "index 16777217 is too large");
}

TEST(SparseRow, AnyInjuredLineIsReadOrRefused) {
  Random random(5);
  for (int i = 0; i < 3000; ++i) {
    try {
      read_line(mutated("1 1:0.5 3:2 16777216:-1e2 # c", random, ":# \t."));
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("f line 7: "));
    }
  }
}

TEST(RawText, NumbersAreThoseOfFloatsInAnyLocale) {
  EXPECT_EQ(parse_number(" +1.5e2\t"), 150.0);
  EXPECT_EQ(parse_number("-0"), 0.0);
  EXPECT_EQ(parse_number("3.4e38"), 3.4e38);
  for (const char* none :
       {"", " ", "+", "+-1", "1,5", "1e39", "-1e39", "nan", "inf", "0x1", "1 2"}) {
    EXPECT_FALSE(parse_number(none)) << none;
  }
}

}  // namespace
}  // namespace cohort::formats
