#include "base/sha256.h"

#include <gtest/gtest.h>

#include <string_view>

#include "base/fail.h"
#include "base/files.h"

namespace cohort {
namespace {

std::string hex_of(std::string_view text) {
  return to_hex(sha256(std::as_bytes(std::span(text))));
}

// The examples of FIPS 180-2 and the digest of nothing.
constexpr std::string_view kOfAbc =
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
constexpr std::string_view kOfAMillionAs =
    "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";

TEST(Sha256, GivesThePublishedValues) {
  EXPECT_EQ(hex_of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex_of("abc"), kOfAbc);
  EXPECT_EQ(hex_of(std::string(1'000'000, 'a')), kOfAMillionAs);
}

TEST(Sha256, PiecesGiveWhatTheWholeGives) {
  const std::string_view whole = "abc";
  Sha256 hash;
  for (const char& c : whole) hash.add(std::as_bytes(std::span(&c, 1)));
  hash.add({});
  EXPECT_EQ(to_hex(hash.finish()), kOfAbc);
}

TEST(Sha256, OfAFileOfAnyLength) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "file";
  write_file_atomically(path, std::string(1'000'000, 'a'));
  EXPECT_EQ(to_hex(sha256_of_file(path)), kOfAMillionAs);
  write_file_atomically(path, "abc");
  EXPECT_EQ(to_hex(sha256_of_file(path)), kOfAbc);
  EXPECT_THROW(sha256_of_file(folder.path() / "missing"), Error);
}

}  // namespace
}  // namespace cohort
