// Checkpoints that are written, read, replaced and pruned, and every way in which one that is not
// whole is found: flipped bits, other lengths, links, missing files, manifests that do not match.

#include "checkpoint/checkpoint_folder.h"

#include <sys/stat.h>

#include "base/fail.h"
#include "base/mutate_test_support.h"
#include "checkpoint/checkpoint_test_support.h"

namespace cohort::checkpoint {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

namespace fs = std::filesystem;

TEST_F(CheckpointFolderTest, WhatIsWrittenIsRead) {
  const fs::path path = folder_.write(Sample{12}.content());
  EXPECT_EQ(path, folder_.path() / "step-0000000012");
  EXPECT_EQ(latest(), "step-0000000012\n");
  const auto found = folder_.newest();
  ASSERT_TRUE(found.checkpoint);
  EXPECT_THAT(found.notes, IsEmpty());
  expect_whole(*found.checkpoint);
  EXPECT_TRUE(found.checkpoint->has("optimizer.safetensors"));
  EXPECT_FALSE(found.checkpoint->has("worker-0.safetensors"));
  EXPECT_THROW(found.checkpoint->tensors("worker-0.safetensors"), Error);
}

TEST_F(CheckpointFolderTest, AFolderThatIsNotThereHasNone) {
  const auto found = folder_.newest();
  EXPECT_FALSE(found.checkpoint);
  EXPECT_THAT(found.notes, IsEmpty());
}

TEST_F(CheckpointFolderTest, KeepsTheLastTwo) {
  for (const std::int64_t step : {10, 20, 30, 40}) write(step);
  EXPECT_THAT(names(), UnorderedElementsAre("step-0000000030", "step-0000000040", "LATEST"));
  EXPECT_EQ(newest(), 40);
}

TEST_F(CheckpointFolderTest, KeepingFewerThanTwoIsRefused) {
  EXPECT_THROW(CheckpointFolder(temporary_.path(), 1), Error);
  CheckpointFolder three(folder_.path(), 3);
  for (const std::int64_t step : {10, 20, 30, 40}) three.write(Sample{step}.content());
  EXPECT_EQ(three.all().size(), 3u);
}

TEST_F(CheckpointFolderTest, ACheckpointOfTheSameStepIsReplaced) {
  write(10);
  Sample other{10};
  other.weights.assign(200'000, 0.5f);
  folder_.write(other.content());
  const auto found = folder_.newest();
  ASSERT_TRUE(found.checkpoint);
  EXPECT_EQ(found.checkpoint->tensors("model.safetensors").floats("weight")[7], 0.5f);
  EXPECT_THAT(names(), UnorderedElementsAre("step-0000000010", "LATEST"));
}

TEST_F(CheckpointFolderTest, LaterStepsThatTheTrainingWentBackBehindAreRemoved) {
  for (const std::int64_t step : {20, 30}) write(step);
  write(25);
  EXPECT_THAT(names(), UnorderedElementsAre("step-0000000020", "step-0000000025", "LATEST"));
  EXPECT_EQ(newest(), 25);
}

TEST_F(CheckpointFolderTest, LeftoversOfADeadWriterAreRemovedAndOtherFilesAreNot) {
  fs::create_directories(folder_.path() / ".part-step-0000000005");
  std::ofstream(folder_.path() / ".part-step-0000000005" / "model.safetensors") << "half";
  std::ofstream(folder_.path() / "notes.txt") << "mine";
  std::ofstream(folder_.path() / "step-by-step.txt") << "mine";
  write(10);
  EXPECT_THAT(names(),
              UnorderedElementsAre("step-0000000010", "LATEST", "notes.txt", "step-by-step.txt"));
}

class BrokenLatest : public CheckpointFolderTest,
                     public testing::WithParamInterface<const char*> {};

TEST_P(BrokenLatest, IsNotNeeded) {
  for (const std::int64_t step : {10, 20}) write(step);
  fs::remove(folder_.path() / "LATEST");
  if (GetParam() != nullptr) std::ofstream(folder_.path() / "LATEST") << GetParam();
  EXPECT_EQ(newest(), 20);
  write(30);
  EXPECT_EQ(latest(), "step-0000000030\n");
}

INSTANTIATE_TEST_SUITE_P(All, BrokenLatest,
                         testing::Values(nullptr, "", "step-00000", "step-0000000099\n",
                                         "step-0000000010\n"));

/// Every file of a checkpoint.
class BrokenFile : public CheckpointFolderTest, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    for (const std::int64_t step : {10, 20}) write(step);
  }

  void expect_passed_over(const std::string& how) {
    const auto found = folder_.newest();
    ASSERT_TRUE(found.checkpoint) << how;
    EXPECT_EQ(found.checkpoint->step(), 10) << how;
    ASSERT_EQ(found.notes.size(), 1u) << how;
    EXPECT_THAT(found.notes[0], HasSubstr((folder_.path() / "step-0000000020").string()));
    EXPECT_THAT(found.notes[0], HasSubstr(GetParam()));
  }

  fs::path path_ = folder_.path() / "step-0000000020" / GetParam();
};

TEST_P(BrokenFile, AFlippedBitIsFound) {
  const std::string whole = read_file(path_);
  const std::size_t stride = std::max<std::size_t>(1, whole.size() / 40);
  for (std::size_t at = 0; at < whole.size(); at += stride) {
    std::string flipped = whole;
    flipped[at] ^= static_cast<char>(1 << (at % 8));
    fs::remove(path_);
    std::ofstream(path_, std::ios::binary) << flipped;
    expect_passed_over("byte " + std::to_string(at));
    if (HasFailure()) return;
  }
}

TEST_P(BrokenFile, ATruncatedOrLongerOneIsFound) {
  const std::string whole = read_file(path_);
  for (const std::string& text : {whole.substr(0, whole.size() - 1),
                                  whole.substr(0, whole.size() / 2), std::string(), whole + "x"}) {
    fs::remove(path_);
    std::ofstream(path_, std::ios::binary) << text;
    expect_passed_over(std::to_string(text.size()) + " bytes");
  }
}

/// Opening a FIFO waits, and reading a device never ends.
TEST_P(BrokenFile, WhatIsNoFileIsFound) {
  fs::remove(path_);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  expect_passed_over("a FIFO");
  fs::remove(path_);
  fs::create_directory(path_);
  expect_passed_over("a folder");
}

TEST_P(BrokenFile, ALinkIsNotFollowed) {
  fs::rename(path_, temporary_.path() / "elsewhere");
  fs::create_symlink(temporary_.path() / "elsewhere", path_);
  expect_passed_over("a link to the right bytes");
  fs::remove(path_);
  fs::create_symlink("/dev/zero", path_);
  expect_passed_over("a link to a device");
}

TEST_P(BrokenFile, AMissingOneIsFound) {
  fs::remove(path_);
  expect_passed_over("missing");
}

INSTANTIATE_TEST_SUITE_P(All, BrokenFile,
                         testing::Values("model.safetensors", "optimizer.safetensors", "state.json",
                                         "manifest.json"),
                         [](const auto& one) {
                           const std::string name = one.param;
                           return name.substr(0, name.find('.'));
                         });

TEST_F(CheckpointFolderTest, WhereAllAreBrokenThereIsNoneAndANoteForEach) {
  for (const std::int64_t step : {10, 20}) {
    write(step);
  }
  for (const fs::path& one : folder_.all()) fs::resize_file(one / "state.json", 3);
  const auto found = folder_.newest();
  EXPECT_FALSE(found.checkpoint);
  EXPECT_THAT(found.notes, ElementsAre(HasSubstr("step-0000000020"), HasSubstr("step-0000000010")));
}

TEST(Manifest, IsReadAsItWasWrittenAndNotOtherwise) {
  const Manifest manifest{.step = 7, .files = {{"a", 5, 0x1234}, {"b", 0, 0}}};
  EXPECT_EQ(parse_manifest(to_text(manifest), "m"), manifest);
  const Manifest outside{.step = 7, .files = {{"../a", 5, 1}}};
  for (const std::string& text :
       {std::string(), std::string("{}"), std::string("[1]"), std::string(100'000, '['),
        to_text(manifest) + " ", to_text(outside), to_text({.step = -1})}) {
    EXPECT_THROW(parse_manifest(text, "m"), Error) << text;
  }
}

TEST(Manifest, NoInjuryIsOverlooked) {
  const std::string whole = to_text({.step = 7, .files = {{"a", 5, 0x1234}, {"b", 0, 0}}});
  Random random(16);
  for (int i = 0; i < 2000; ++i) {
    const std::string text = mutated(whole, random, "{}[]\",:x0");
    if (text == whole) continue;
    EXPECT_THROW(parse_manifest(text, "m"), Error) << text;
  }
}

TEST(Manifest, AFileIsNamedOnce) {
  EXPECT_THROW(parse_manifest(to_text({.step = 7, .files = {{"a", 5, 1}, {"a", 5, 1}}}), "m"),
               Error);
}

TEST_F(CheckpointFolderTest, OneThatIsLargerThanItsModelCanUseIsNotRead) {
  for (const std::int64_t step : {10, 20}) write(step);
  EXPECT_EQ(folder_.newest(1'000'000).checkpoint->step(), 20);
  const auto found = folder_.newest(100'000);
  EXPECT_FALSE(found.checkpoint);
  EXPECT_THAT(found.notes, testing::Each(HasSubstr("more than 100000 bytes")));
}

TEST_F(CheckpointFolderTest, ANameWithANegativeStepIsNoCheckpoint) {
  write(10);
  fs::create_directories(folder_.path() / "step--000000001");
  EXPECT_EQ(folder_.all().size(), 1u);
}

}  // namespace
}  // namespace cohort::checkpoint
