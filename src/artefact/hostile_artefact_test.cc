// Proves that a model.json changed by anybody is loaded as it is or refused with one sentence:
// numbers that cannot be, parts that disagree, deep nesting, links, and 1,500 random injuries. A
// model.json that somebody else wrote: it is loaded or refused with one sentence, and asks for no
// memory that its weights do not fill.
#include <cohort/loaded_model.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "artefact/artefact_test_support.h"
#include "base/fail.h"
#include "base/mutate_test_support.h"

namespace cohort::artefact {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class HostileArtefact : public testing::Test {
 protected:
  std::string refusal() {
    try {
      load_model(saved_.dir());
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  /// What loading says where the value at `pointer` ("/data/outputs") is another.
  std::string refusal_with(const std::string& pointer, const json& value) {
    json changed = json::parse(whole_);
    changed[json::json_pointer(pointer)] = value;
    saved_.write_text(changed.dump());
    return refusal();
  }

  const TemporaryFolder folder_;
  const SavedModel saved_{test_table(folder_), test_layers()};
  const std::string whole_ = saved_.text();
};

TEST_F(HostileArtefact, IsLoadedAsItIs) {
  EXPECT_EQ(refusal(), "");
  EXPECT_EQ(refusal_with("/later/versions", "may add fields"), "");
}

TEST_F(HostileArtefact, NumbersThatCannotBeAreNamed) {
  for (const json& value :
       {json(-1), json(0), json(1e300), json(9223372036854775807), json(18446744073709551615U),
        json("ten"), json(nullptr), json::array()}) {
    EXPECT_THAT(refusal_with("/data/outputs", value), HasSubstr("model.json: data.outputs is "));
    EXPECT_NE(refusal_with("/architecture/layers/0/out", value), "") << value;
    EXPECT_NE(refusal_with("/data/input_shape", json::array({value})), "") << value;
    EXPECT_NE(refusal_with("/weights/bytes", value), "") << value;
  }
  EXPECT_THAT(refusal_with("/data/input_shape", std::vector<int>(8, 1 << 24)),
              HasSubstr("larger than any sample can be"));
  EXPECT_THAT(refusal_with("/preprocessing/mean/1", "much"),
              HasSubstr("preprocessing.mean has \"much\", not a finite number"));
  EXPECT_THAT(refusal_with("/trained/workers", 1 << 30), HasSubstr("trained.workers"));
}

TEST_F(HostileArtefact, LayersThatWouldFillMemoryAreRefusedByTheSizeOfTheWeights) {
  constexpr int kMany = 20'000'000;
  json layers = json::parse(whole_)["architecture"]["layers"];
  layers[0]["out"] = kMany;
  layers[0]["output"] = layers[1]["input"] = layers[1]["output"] = layers[2]["input"] = {kMany};
  EXPECT_THAT(refusal_with("/architecture/layers", layers), HasSubstr("have more weights than"));
}

TEST_F(HostileArtefact, DeepNestingAndTruncationAreRefused) {
  for (const std::string& text :
       {std::string(1'000'000, '['), whole_.substr(0, whole_.size() / 2), std::string("{}"),
        std::string("[1]"), std::string(), std::string("\0\0", 2)}) {
    saved_.write_text(text);
    EXPECT_NE(refusal(), "");
    EXPECT_LT(refusal().size(), 500u);
  }
  json branch = {{"type", "residual"}, {"layers", json::array()}};
  for (int i = 0; i < 1000; ++i) {
    branch = json{{"type", "residual"}, {"layers", json::array({branch})}};
  }
  EXPECT_THAT(refusal_with("/architecture/layers/0", branch), HasSubstr("nests too deep"));
}

TEST_F(HostileArtefact, WhatDisagreesIsNamed) {
  EXPECT_THAT(refusal_with("/preprocessing/targets/names", {"a", "b"}),
              HasSubstr("preprocessing.targets.names has 2 classes but the data has 3"));
  EXPECT_THAT(refusal_with("/preprocessing/targets/names", {"a", "b", "a"}),
              HasSubstr("the class \"a\" is there twice"));
  EXPECT_THAT(refusal_with("/preprocessing/factor", {1.0}),
              HasSubstr("preprocessing.factor has 1 numbers for 2 features"));
  EXPECT_THAT(refusal_with("/architecture/layers/2/out", 4),
              HasSubstr("the network ends in 4 outputs but the data has 3 classes"));
  EXPECT_THAT(refusal_with("/architecture/layers/1/output", {7}),
              HasSubstr("architecture.layers[2].output is not the shape that this layer gives"));
  EXPECT_THAT(refusal_with("/architecture/layers/1/type", "tnah"),
              HasSubstr("\"tnah\" is unknown"));
  EXPECT_THAT(refusal_with("/task", "prophecy"), HasSubstr("neither classes nor values"));
  EXPECT_THAT(refusal_with("/format", "other"), HasSubstr("is not a model that Cohort wrote"));
  EXPECT_THAT(refusal_with("/version", 2), HasSubstr("use a newer one"));
  EXPECT_THAT(refusal_with("/weights/crc32c", "00000000"), HasSubstr("do not belong together"));
  EXPECT_THAT(refusal_with("/weights/crc32c", "../../etc"), HasSubstr("eight hexadecimal digits"));
}

TEST_F(HostileArtefact, NoFileIsOpenedByAName) {
  const std::string said = refusal_with(
      "/architecture", {{"kind", "torchscript"}, {"crc32c", "00000000"}, {"file", "/etc/passwd"}});
  EXPECT_THAT(said, HasSubstr("name the file that was trained"));
  EXPECT_THAT(refusal_with("/architecture", {{"kind", "own"}}), HasSubstr("load_model(dir, make)"));
}

TEST_F(HostileArtefact, WeightsBehindALinkAreNotRead) {
  const auto weights = saved_.folder.path() / kWeightsFile;
  std::filesystem::rename(weights, folder_.path() / "elsewhere");
  std::filesystem::create_symlink(folder_.path() / "elsewhere", weights);
  EXPECT_NE(refusal(), "");
}

TEST_F(HostileArtefact, AnyInjuredFileIsReadOrRefused) {
  Random random(21);
  for (int i = 0; i < 1500; ++i) {
    saved_.write_text(mutated(whole_, random, "{}[],:\"0-e. "));
    EXPECT_LT(refusal().size(), 1000u);
  }
}

}  // namespace
}  // namespace cohort::artefact
