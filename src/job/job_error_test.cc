#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/fail.h"
#include "base/files.h"
#include "job/job_file.h"

/// What a user is told who has made a mistake: the whole sentence, with file, line and what was
/// meant.

namespace cohort::job {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

/// What loading a file of this content is refused with; the file is called "job.toml" in it.
Error refusal(const std::string& content, const std::vector<std::string>& overrides = {}) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "job.toml";
  write_file_atomically(file, content);
  try {
    load_job(file, overrides);
  } catch (const Error& error) {
    std::string message = error.what();
    const std::size_t at = message.find(folder.path().string());
    if (at != std::string::npos) message.erase(at, folder.path().string().size() + 1);
    return Error(error.code(), message);
  }
  return Error(ErrorCode::cancelled, "the file was accepted");
}

std::string message_of(const std::string& content, const std::vector<std::string>& overrides = {}) {
  const Error error = refusal(content, overrides);
  EXPECT_EQ(error.code(), ErrorCode::invalid) << error.what();
  return error.what();
}

TEST(JobFileErrors, UnknownKeyNamesFileLineAndTheNearestKey) {
  EXPECT_EQ(message_of("[train]\nbatch = 4\nepcohs = 3\n"),
            "job.toml:3: unknown key train.epcohs; did you mean train.epochs?");
}

TEST(JobFileErrors, KeyInTheWrongSectionIsFoundInItsOwn) {
  EXPECT_EQ(message_of("[train]\nlr = 0.1\n"),
            "job.toml:2: unknown key train.lr; did you mean train.optimizer.lr?");
  EXPECT_EQ(message_of("epochs = 1\n"),
            "job.toml:1: unknown key epochs; did you mean train.epochs?");
}

TEST(JobFileErrors, UnknownKeyOfAnInlineTable) {
  EXPECT_EQ(message_of("[train]\noptimizer = { kind = \"sgd\", momentun = 0.9 }\n"),
            "job.toml:2: unknown key train.optimizer.momentun; did you mean "
            "train.optimizer.momentum?");
}

TEST(JobFileErrors, KeyLikeNoOtherGetsNoSuggestion) {
  EXPECT_EQ(message_of("[log]\nzzzzzzzzzzzzzzzzzzzzzzzzzz = 1\n"),
            "job.toml:2: unknown key log.zzzzzzzzzzzzzzzzzzzzzzzzzz");
}

TEST(JobFileErrors, UnknownSection) {
  EXPECT_EQ(message_of("[job]\nname = \"a\"\n[trian]\nepochs = 1\n"),
            "job.toml:3: unknown section trian; did you mean train?");
}

TEST(JobFileErrors, SectionThatIsAValue) {
  EXPECT_EQ(message_of("train = 3\n"),
            "job.toml:1: train must be a section with keys of its own, but is 3");
}

TEST(JobFileErrors, WrongTypeNamesKeyExpectedAndFound) {
  EXPECT_EQ(message_of("[train]\nepochs = \"ten\"\n"),
            "job.toml:2: train.epochs must be a whole number, but is the string \"ten\"");
  EXPECT_EQ(message_of("[train]\n\nepochs = 1.5\n"),
            "job.toml:3: train.epochs must be a whole number, but is 1.5");
  EXPECT_EQ(message_of("[job]\nname = 3\n"), "job.toml:2: job.name must be a string, but is 3");
  EXPECT_EQ(message_of("[log]\ntrace = 1\n"),
            "job.toml:2: log.trace must be true or false, but is 1");
  EXPECT_EQ(message_of("[train]\nclip_norm = true\n"),
            "job.toml:2: train.clip_norm must be a number, but is true");
  EXPECT_EQ(message_of("[train]\nbatch = {}\n"),
            "job.toml:2: train.batch must be a whole number, but is a table");
  EXPECT_THAT(message_of("[model]\nhidden = [1, \"b\"]\n"),
              StartsWith("job.toml:2: model.hidden must be a list of whole numbers, but is the "
                         "list "));
  EXPECT_THAT(message_of("[model]\nlayers = 3\n"),
              StartsWith("job.toml:2: model.layers must be a list of layers, but is 3"));
}

TEST(JobFileErrors, ValueOutsideItsLimits) {
  EXPECT_EQ(message_of("[cluster]\nworkers = 0\n"),
            "job.toml:2: cluster.workers must be from 1 to 4096, but is 0");
  EXPECT_EQ(message_of("[train]\nbatch = -4\n"),
            "job.toml:2: train.batch must be from 1 to 16777216, but is -4");
  EXPECT_EQ(message_of("[cluster]\ntimeout_seconds = inf\n"),
            "job.toml:2: cluster.timeout_seconds must be a finite number, but is inf");
  EXPECT_EQ(message_of("[model]\nhidden = [3, 0]\n"),
            "job.toml:2: Every number of model.hidden must be from 1 to 16777216, but is 0");
}

TEST(JobFileErrors, UnknownNameOffersTheKnownOnes) {
  EXPECT_EQ(message_of("[strategy]\nalgorithm = \"rnig\"\n"),
            "job.toml:2: strategy.algorithm \"rnig\" is unknown; did you mean \"ring\"? it can be "
            "ring, direct, tree or auto");
}

TEST(JobFileErrors, NotToml) {
  EXPECT_THAT(message_of("[train]\nepochs = 1\nbatch = = 3\n"),
              StartsWith("job.toml:3: this is not TOML: "));
  EXPECT_THAT(message_of("[train]\nepochs = 1\nepochs = 2\n"),
              StartsWith("job.toml:3: this is not TOML: "));
  EXPECT_THAT(message_of("\xff\xfe"), StartsWith("job.toml:1: this is not TOML: "));
}

TEST(JobFileErrors, MissingFileAndFolder) {
  const TemporaryFolder folder;
  try {
    load_job(folder.path() / "none.toml");
    FAIL() << "a missing file was loaded";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_found);
    EXPECT_THAT(error.what(), HasSubstr("none.toml"));
  }
  try {
    load_job(folder.path());
    FAIL() << "a folder was loaded";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid);
    EXPECT_THAT(error.what(), HasSubstr("is a folder"));
  }
}

TEST(JobFileErrors, LayersAreBlamedByTheirLine) {
  const std::string start = "[model]\nlayers = [\n  { type = \"relu\" },\n";
  EXPECT_THAT(message_of(start + "  { type = \"linear\", outs = 3 },\n]\n"),
              AllOf(StartsWith("job.toml:4: unknown key outs of a layer of type linear"),
                    HasSubstr("did you mean out?")));
  EXPECT_THAT(message_of(start + "  { type = \"linear\", out = 3, kernel = 5 },\n]\n"),
              StartsWith("job.toml:4: unknown key kernel of a layer of type linear"));
  EXPECT_THAT(message_of(start + "  { type = \"liner\", out = 3 },\n]\n"),
              StartsWith("job.toml:4: layer type \"liner\" is unknown; did you mean \"linear\"?"));
  EXPECT_THAT(message_of(start + "  { out = 3 },\n]\n"),
              StartsWith("job.toml:4: a layer has no type; it can be "));
  EXPECT_THAT(message_of(start + "  { type = \"linear\", out = true },\n]\n"),
              StartsWith("job.toml:4: the layer's out must be a whole number, but is true"));
  EXPECT_THAT(message_of(start + "  { type = \"dropout\", p = 1.5 },\n]\n"),
              StartsWith("job.toml:4: the layer's p must be from 0 to 1, but is 1.5"));
}

TEST(JobFileErrors, LayerOfABranchIsBlamedByItsLine) {
  EXPECT_THAT(
      message_of("[[model.layers]]\ntype = \"residual\"\nlayers = [\n  { type = \"rleu\" }\n]\n"),
      StartsWith("job.toml:4: layer type \"rleu\" is unknown; did you mean \"relu\"?"));
}

TEST(JobFileErrors, OverrideIsNamed) {
  EXPECT_EQ(message_of("", {"train.epcohs=3"}),
            "--set train.epcohs=3: unknown key train.epcohs; did you mean train.epochs?");
  EXPECT_EQ(
      message_of("", {"train.epochs=ten"}),
      "--set train.epochs=ten: train.epochs must be a whole number, but is the string \"ten\"");
  EXPECT_THAT(message_of("", {"train.epochs"}),
              StartsWith("--set train.epochs: write it as key=value"));
  EXPECT_THAT(message_of("", {"=3"}), StartsWith("--set =3: write it as key=value"));
  EXPECT_EQ(message_of("", {"train.optimizer=3"}),
            "--set train.optimizer=3: train.optimizer must be a section with keys of its own, but "
            "is 3");
  EXPECT_EQ(message_of("", {"cluster.workers=0"}),
            "--set cluster.workers=0: cluster.workers must be from 1 to 4096, but is 0");
}

}  // namespace
}  // namespace cohort::job
