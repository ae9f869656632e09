// Proves that a line comes whole and once, wherever the bytes of it are cut, and how lines end.

#include "programs/output.h"

#include <gtest/gtest.h>

namespace cohort::programs {
namespace {

std::string lines_of(std::string_view bytes, std::size_t piece = 1000) {
  Lines lines("> ");
  std::string whole;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
    lines.take(bytes.substr(0, piece), whole);
  }
  lines.finish(whole);
  return whole;
}

TEST(Lines, EachHasThePrefixAndIsWhole) {
  EXPECT_EQ(lines_of("one\ntwo\n"), "> one\n> two\n");
  EXPECT_EQ(lines_of("one\n\ntwo"), "> one\n> \n> two\n");
  EXPECT_EQ(lines_of(""), "");
  EXPECT_EQ(lines_of("\n"), "> \n");
}

TEST(Lines, ABarThatIsDrawnOverIsALineEachTime) {
  EXPECT_EQ(lines_of("\r10 %\r20 %\rdone\n"), "> 10 %\n> 20 %\n> done\n");
  EXPECT_EQ(lines_of("windows\r\nends\r\n\r\n"), "> windows\n> ends\n> \n");
}

TEST(Lines, AreTheSameHoweverTheBytesAreCut) {
  const std::string bytes = "one\r\ntwo\n\r\n\rbar\rbar 2\n\n\r\rend";
  for (std::size_t piece = 1; piece < bytes.size(); ++piece) {
    EXPECT_EQ(lines_of(bytes, piece), lines_of(bytes)) << piece;
  }
}

TEST(Lines, NothingIsGivenBeforeTheLineIsWhole) {
  Lines lines("");
  std::string whole;
  lines.take("half", whole);
  EXPECT_EQ(whole, "");
  lines.take(" a line\nand", whole);
  EXPECT_EQ(whole, "half a line\n");
}

TEST(Lines, ALineBeyondAllMeasureComesInParts) {
  Lines lines("> ", 4);
  std::string whole;
  lines.take("12345678", whole);
  lines.take("9\n1234\n", whole);
  EXPECT_EQ(whole, "> 1234\n> 5678\n> 9\n> 1234\n");
}

TEST(Lines, AMegabyteIsOneLine) {
  const std::string line(1 << 20, 'x');
  EXPECT_EQ(lines_of(line + "\n", 65536), "> " + line + "\n");
}

}  // namespace
}  // namespace cohort::programs
