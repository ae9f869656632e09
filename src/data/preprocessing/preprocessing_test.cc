// Proves that what loading learned survives JSON to the last bit of every input, what unknown
// classes and characters do, and that files are read right wherever a window ends.
#include "data/preprocessing/preprocessing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/fail.h"
#include "base/files.h"
#include "base/json.h"
#include "data/datasets.h"
#include "data/load_data.h"

namespace cohort::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class PreprocessingTest : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& content) {
    std::ofstream(folder_.path() / name, std::ios::binary) << content;
    return (folder_.path() / name).string();
  }

  template <class Call>
  std::string refusal_of(const Call& call) {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  const TemporaryFolder folder_;
  DataOptions options_;
};

TEST_F(PreprocessingTest, OfEveryKindComesBackFromJson) {
  const std::string table = write("t.csv", "a,\xff,y\n0.1,1e-7,x\n0.3,3e5,\"z,\"\n0.7,-1,x\n");
  const std::string sparse = write("t.svm", "-1 1:2 7:1\n+1 2:1\n-1 3:4\n");
  const std::string text = write("t.txt", "words and \xe9 more words, and more");
  const std::pair<const char*, std::string> kinds[] = {
      {"csv", table}, {"libsvm", sparse}, {"text", text}, {"generated", ""}};
  for (const auto& [kind, path] : kinds) {
    for (const char* unknown : {"error", "accept"}) {
      options_.kind = kind;
      options_.path = path;
      options_.validation_path = path;
      options_.context = 3;
      options_.samples = 10;
      options_.unknown = unknown;
      const LoadedData data = load_data(options_, 1);
      const std::string json = to_json(data.preprocessing).dump();
      const nlohmann::json parsed = parse_json(json);
      const Preprocessing back = read_preprocessing(JsonFields(parsed, "f"), data.spec);
      EXPECT_EQ(to_json(back).dump(), json) << kind;
      EXPECT_EQ(back.class_names(), data.preprocessing.class_names()) << kind;
      EXPECT_EQ(static_cast<std::int64_t>(back.class_names().size()), data.spec.outputs) << kind;
    }
  }
}

TEST_F(PreprocessingTest, MakesTheSameFloatsOfTheSameTextAfterARoundTrip) {
  options_.kind = "csv";
  options_.path = write("t.csv", "a,b,y\n0.1,1e-7,0\n0.3,3e5,1\n123456.789,-1,0\n");
  options_.validation_path = options_.path;
  const LoadedData data = load_data(options_, 1);
  const nlohmann::json parsed = parse_json(to_json(data.preprocessing).dump());
  const auto back = read_preprocessing(JsonFields(parsed, "f"), data.spec);
  const std::vector<float> raw = {0.1F, 1e-7F, 0.3F, 3e5F, 123456.789F, -1};
  std::vector<float> input(raw.size());
  std::get<TableInput>(back.input).standardise(raw, input.data());
  const torch::Tensor loaded = data.train->gather(all_rows(3)).input;
  EXPECT_THAT(input, testing::ElementsAreArray(loaded.data_ptr<float>(), 6));
}

TEST_F(PreprocessingTest, AnUnknownClassIsNamedOrAccepted) {
  options_.kind = "csv";
  options_.path = write("t.csv", "a,y\n1,10\n2,9\n3,9\n");
  options_.validation_path = write("v.csv", "a,y\n1,9\n2,11\n3,word\n");
  EXPECT_THAT(refusal_of([&] { load_data(options_, 1); }),
              HasSubstr("v.csv line 3: the class \"11\" does not occur in the training data"));
  options_.unknown = "accept";
  const LoadedData data = load_data(options_, 1);
  EXPECT_EQ(data.spec.outputs, 3);
  EXPECT_THAT(data.preprocessing.class_names(), ElementsAre("9", "10", "<unknown>"));
  const auto ids = data.validation->gather(all_rows(3)).target;
  EXPECT_TRUE(ids.equal(torch::tensor({0, 2, 2})));
  options_.unknown = "perhaps";
  EXPECT_THAT(refusal_of([&] { load_data(options_, 1); }), HasSubstr("data.unknown"));
}

// Of a file that is cut in two, a class of the validation part alone was not seen either.
TEST_F(PreprocessingTest, WithAnUnknownClassOnlyWhatTrainingSawIsKnown) {
  options_.kind = "libsvm";
  std::string content;
  for (int i = 0; i < 20; ++i) content += fmt::format("{} 1:{}\n", i, i);
  options_.path = write("t.svm", content);
  options_.validation_fraction = 0.25;
  EXPECT_EQ(load_data(options_, 1).spec.outputs, 20);
  options_.unknown = "accept";
  const LoadedData data = load_data(options_, 1);
  EXPECT_EQ(data.spec.outputs, 16);
  EXPECT_TRUE(data.validation->gather(all_rows(5)).target.equal(torch::full({5}, 15)));
}

TEST_F(PreprocessingTest, AnUnknownCharacterIsNamedOrAccepted) {
  options_.kind = "text";
  options_.context = 2;
  options_.path = write("t.txt", "abab\nab");
  options_.validation_path = write("v.txt", "ab?a\xff");
  EXPECT_EQ(load_data(options_, 1).spec.vocabulary, 5);  // Those of both files, as ever.
  options_.unknown = "accept";
  const LoadedData data = load_data(options_, 1);
  EXPECT_EQ(data.spec.vocabulary, 4);
  EXPECT_TRUE(data.validation->gather(all_rows(2)).input.equal(torch::tensor({{1, 2}, {3, 1}})));
  const Vocabulary known("ab\n", false);
  EXPECT_EQ(refusal_of([&] { known.check("ab\nab\na!", "f.txt"); }),
            "f.txt line 3: the character \"!\" does not occur in the training data");
  EXPECT_EQ(refusal_of([&] { known.check("\xc3", "f.txt", 7); }),
            "f.txt line 7: the character byte 0xc3 does not occur in the training data");
}

}  // namespace
}  // namespace cohort::data
