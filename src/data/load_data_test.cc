// Proves what load_data() makes of CSV, LIBSVM and text files and of a program's own datasets:
// samples, classes, shapes; and the exact message for everything that can be wrong with them. Files
// are written to a temporary folder. Images and generated data: sources/images_test.cc.
#include "data/load_data.h"

#include <cohort/error.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "base/fail.h"
#include "base/files.h"

namespace cohort::data {
namespace {

using testing::ElementsAre;
using Shape = std::vector<std::int64_t>;

Batch all_of(const Dataset& dataset) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(dataset.size()));
  std::iota(indices.begin(), indices.end(), 0);
  return dataset.gather(indices);
}

std::vector<std::int64_t> ids(const torch::Tensor& tensor) {
  const auto flat = tensor.to(torch::kInt64).contiguous();
  return {flat.data_ptr<std::int64_t>(), flat.data_ptr<std::int64_t>() + flat.numel()};
}

class LoadData : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& content) {
    const auto path = folder_.path() / name;
    std::ofstream(path, std::ios::binary) << content;
    return path.string();
  }

  /// Loading fails with this code and exactly this message; "F/" stands for the test's folder.
  void expect_error(ErrorCode code, std::string message) {
    const std::string folder = folder_.path().string();
    for (auto at = message.find("F/"); at != message.npos; at = message.find("F/", at)) {
      message.replace(at, 1, folder);
      at += folder.size();  // Behind it: the folder's own name may end in F.
    }
    try {
      load_data(options, 1);
      ADD_FAILURE() << "nothing thrown, expected: " << message;
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), message.c_str());
      EXPECT_EQ(error.code(), code);
    }
  }

  DataOptions options;
  TemporaryFolder folder_;
};

TEST_F(LoadData, NamesTheNearestKind) {
  options.kind = "minst";
  expect_error(
      ErrorCode::invalid,
      "data kind \"minst\" is unknown; did you mean \"mnist\"? it can be mnist, csv, libsvm, "
      "text or generated");
}

// ---- csv ----

class Csv : public LoadData {
 protected:
  Csv() { options.kind = "csv"; }

  LoadedData load(const std::string& content) {
    options.path = write("a.csv", content);
    return load_data(options, 1);
  }

  void expect_csv_error(const std::string& content, const std::string& message) {
    options.path = write("a.csv", content);
    expect_error(ErrorCode::invalid, message);
  }
};

TEST_F(Csv, ReadsQuotesLineEndsAndByteOrderMark) {
  options.target = "the \"kind\", or not";
  options.validation_path = write("v.csv", "\"the \"\"kind\"\", or not\",x\ndog,2");
  const auto data = load(
      "\xef\xbb\xbf\"the \"\"kind\"\", or not\",x\r\n\"a\nfox, red\",\"1\"\r\n\r\ndog, +3 \r\n");
  const Batch train = all_of(*data.train);
  EXPECT_THAT(ids(train.target), ElementsAre(0, 1));  // "a fox, red" stands before "dog".
  EXPECT_TRUE(train.input.equal(torch::tensor({{-1.f}, {1.f}})));
  EXPECT_THAT(ids(all_of(*data.validation).target), ElementsAre(1));
}

TEST_F(Csv, StandardisesByTheTrainingPart) {
  options.validation_path = write("v.csv", "a,b,y\n5,7,1\n");
  const auto data = load("a,b,y\n1,7,0\n3,7,1\n");
  EXPECT_EQ(data.spec.input_shape, Shape{2});
  EXPECT_EQ(data.spec.outputs, 2);
  EXPECT_TRUE(data.spec.classes);
  EXPECT_TRUE(all_of(*data.train).input.equal(torch::tensor({{-1.f, 0.f}, {1.f, 0.f}})));
  EXPECT_TRUE(all_of(*data.validation).input.equal(torch::tensor({{3.f, 0.f}})));
}

TEST_F(Csv, SetsAFractionAside) {
  std::string content = "x,y\n";
  for (int i = 0; i < 40; ++i) content += fmt::format("{},{}\n", i, i);
  options.task = "values";
  options.validation_fraction = 0.25;
  const auto data = load(content);
  EXPECT_EQ(data.train->size(), 30);
  EXPECT_EQ(data.validation->size(), 10);
  const Batch train = all_of(*data.train);
  EXPECT_NEAR(train.input.mean().item<float>(), 0, 1e-6);
  EXPECT_NEAR(train.input.var(false).item<float>(), 1, 1e-5);
  auto seen = ids(torch::cat({train.target, all_of(*data.validation).target}).flatten());
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(seen, ids(torch::arange(40)));
  EXPECT_TRUE(all_of(*load_data(options, 1).train).target.equal(train.target));
  EXPECT_FALSE(all_of(*load_data(options, 2).train).target.equal(train.target));
}

TEST_F(Csv, CountsClassesInOrder) {
  options.header = false;
  options.validation_path = write("v.csv", "0,9\n0,10\n0,-1\n");
  EXPECT_THAT(ids(all_of(*load("0,10\n0,9\n0,-1\n").train).target), ElementsAre(2, 1, 0));
  EXPECT_THAT(ids(all_of(*load_data(options, 1).validation).target), ElementsAre(1, 2, 0));
  options.validation_path = write("v.csv", "0,b\n");
  EXPECT_THAT(ids(all_of(*load("0,b\n0,a\n0,10\n").train).target), ElementsAre(2, 1, 0));
}

TEST_F(Csv, PredictsValues) {
  options.task = "values";
  options.target = "y";
  options.validation_path = write("v.csv", "y,x\n1,2\n");
  const auto data = load("y,x\n0.5,1\n-2,3\n");
  EXPECT_FALSE(data.spec.classes);
  EXPECT_EQ(data.spec.outputs, 1);
  EXPECT_TRUE(all_of(*data.train).target.equal(torch::tensor({{0.5f}, {-2.f}})));
}

TEST_F(Csv, SaysWhatIsWrong) {
  expect_error(ErrorCode::invalid, "csv data needs a path: the file to read");
  options.path = (folder_.path() / "none.csv").string();
  expect_error(ErrorCode::not_found, "there is no file F/none.csv");
  expect_csv_error("", "F/a.csv is empty");
  expect_csv_error("a,b\n", "F/a.csv has a header but no samples");
  expect_csv_error("a\n1\n", "F/a.csv has one column; a feature and a target are needed");
  expect_csv_error("a,b\n1,2\n1,2,3\n", "F/a.csv line 3: it has 3 fields, expected 2");
  expect_csv_error("a,b\n1,2\nx1,2\n", "F/a.csv line 3, column \"a\": \"x1\" is not a number");
  expect_csv_error("a,b\n,2\n", "F/a.csv line 2, column \"a\": \"\" is not a number");
  expect_csv_error("a,b\nnan,2\n", "F/a.csv line 2, column \"a\": \"nan\" is not a number");
  expect_csv_error("a,b\n1,\n", "F/a.csv line 2, column \"b\": the target is missing");
  expect_csv_error("a,b\n\"1,2\n3,4\n", "F/a.csv line 2: a quote is opened and never closed");
  expect_csv_error("a,b\n\"1\"x,2\n", "F/a.csv line 2: there is text after a closing quote");
  expect_csv_error("a,b\n1,c\n2,c\n",
                   "F/a.csv: all samples are of the class \"c\"; at least 2 are needed");
  expect_csv_error("a,b\n1,1\n2,2.5\n",
                   "F/a.csv line 3: the target 2.5 is not a class; set task = \"values\" to "
                   "predict numbers");
}

TEST_F(Csv, SaysWhichOptionIsWrong) {
  options.task = "value";
  expect_csv_error("a,b\n1,2\n",
                   "task of csv data \"value\" is unknown; did you mean \"values\"? it can be "
                   "classes or values");
  options.task = "values";
  expect_csv_error("a,b\n1,2\n",
                   "F/a.csv has 1 sample; at least 2 are needed, as one is set aside for "
                   "validation");
  expect_csv_error("a,b\n1,c\n2,3\n", "F/a.csv line 2: the target \"c\" is not a number");
  options.validation_fraction = 1;
  expect_csv_error("a,b\n1,2\n3,4\n", "validation_fraction is 1; it must be above 0 and below 1");
  options.target = "size";
  expect_csv_error("sizes,b\n1,2\n",
                   "the target column in F/a.csv \"size\" is unknown; did you mean \"sizes\"? it "
                   "can be sizes or b");
}

TEST_F(Csv, ComparesTheValidationFile) {
  options.validation_path = write("v.csv", "a,c\n1,2\n");
  expect_csv_error("a,b\n1,2\n3,4\n",
                   "the columns of F/v.csv (a, c) are not those of F/a.csv (a, b)");
  options.validation_path = write("v.csv", "a,b\n1,2\n5,6\n");
  expect_csv_error("a,b\n1,2\n3,4\n",
                   "F/v.csv line 3: the class \"6\" does not occur in the training data");
}

// ---- libsvm ----

class Libsvm : public LoadData {
 protected:
  Libsvm() { options.kind = "libsvm"; }

  void expect_libsvm_error(const std::string& content, const std::string& message) {
    options.path = write("a.svm", content);
    expect_error(ErrorCode::invalid, message);
  }
};

TEST_F(Libsvm, MakesLinesDense) {
  options.path = write("a.svm", "+1 1:0.5 3:-2 # note\n\n-1 2:1e1\r\n1\n");
  options.validation_path = write("v.svm", "-1 4:1\n");
  const auto data = load_data(options, 1);
  EXPECT_EQ(data.spec.input_shape, Shape{4});
  EXPECT_EQ(data.spec.outputs, 2);
  const Batch train = all_of(*data.train);
  EXPECT_TRUE(train.input.equal(
      torch::tensor({{0.5f, 0.f, -2.f, 0.f}, {0.f, 10.f, 0.f, 0.f}, {0.f, 0.f, 0.f, 0.f}})));
  EXPECT_THAT(ids(train.target), ElementsAre(1, 0, 1));
  EXPECT_THAT(ids(all_of(*data.validation).target), ElementsAre(0));
}

TEST_F(Libsvm, PredictsValuesAndSetsAFractionAside) {
  options.path = write("a.svm", "0.5 1:1\n1.5 1:2\n2.5 1:3\n3.5 2:4\n");
  options.task = "values";
  options.features = 5;
  options.validation_fraction = 0.5;
  const auto data = load_data(options, 1);
  EXPECT_EQ(data.train->size(), 2);
  EXPECT_EQ(data.validation->size(), 2);
  EXPECT_EQ(all_of(*data.train).input.sizes(), (Shape{2, 5}));
  EXPECT_EQ(all_of(*data.train).target.sizes(), (Shape{2, 1}));
}

TEST_F(Libsvm, SaysWhatIsWrong) {
  expect_error(ErrorCode::invalid, "libsvm data needs a path: the file to read");
  expect_libsvm_error("\n# nothing\n", "F/a.svm has no samples");
  expect_libsvm_error("1\n2\n", "F/a.svm has labels but no features");
  expect_libsvm_error("1 1:1\nx 1:2\n", "F/a.svm line 2: the label \"x\" is not a number");
  for (const char* pair : {"1", "1:", ":1", "a:1", "1:b", "1x:2", "1:2:3", "1.5:2"}) {
    expect_libsvm_error(fmt::format("1 {}\n", pair),
                        fmt::format("F/a.svm line 1: \"{}\" is not of the form index:value", pair));
  }
  expect_libsvm_error("1 0:1\n",
                      "F/a.svm line 1: index 0 comes after 0; indices start at 1 and ascend");
  expect_libsvm_error("1 3:1 2:1\n",
                      "F/a.svm line 1: index 2 comes after 3; indices start at 1 and ascend");
  options.features = 2;
  expect_libsvm_error("1 1:1\n2 3:1\n", "F/a.svm has a feature with index 3, but features is 2");
  options.features = 0;
  expect_libsvm_error("1 1:1\n2 9000000000:1\n",
                      "F/a.svm line 2: index 9000000000 is too large; there can be 16777216 "
                      "features");
}

// ---- text ----

class Text : public LoadData {
 protected:
  Text() {
    options.kind = "text";
    options.context = 3;
  }
};

TEST_F(Text, PredictsTheNextCharacter) {
  options.path = write("a.txt", "abcabcab|cbacba");
  options.validation_fraction = 0.4;  // The last 6 of 15.
  const auto data = load_data(options, 1);
  EXPECT_TRUE(data.spec.tokens);
  EXPECT_EQ(data.spec.input_shape, Shape{3});
  EXPECT_EQ(data.spec.vocabulary, 4);  // a b c |
  EXPECT_EQ(data.spec.outputs, 4);
  const Batch train = all_of(*data.train);
  EXPECT_EQ(train.input.sizes(), (Shape{2, 3}));
  EXPECT_THAT(ids(train.input), ElementsAre(0, 1, 2, 0, 1, 2));
  EXPECT_THAT(ids(train.target), ElementsAre(1, 2, 0, 1, 2, 0));
  const Batch validation = all_of(*data.validation);
  EXPECT_THAT(ids(validation.input), ElementsAre(2, 1, 0));
  EXPECT_THAT(ids(validation.target), ElementsAre(1, 0, 2));
}

TEST_F(Text, TakesBytesOfTwoFiles) {
  options.path = write("a.txt", "\xc3\xa4\xc3\xa4");
  options.validation_path = write("v.txt", std::string("\0\xff\0\xff", 4));
  const auto data = load_data(options, 1);
  EXPECT_EQ(data.spec.vocabulary, 4);
  EXPECT_THAT(ids(all_of(*data.train).input), ElementsAre(2, 1, 2));
  EXPECT_THAT(ids(all_of(*data.validation).input), ElementsAre(0, 3, 0));
}

TEST_F(Text, SaysWhatIsWrong) {
  expect_error(ErrorCode::invalid, "text data needs a path: the file to read");
  options.path = write("a.txt", "");
  expect_error(ErrorCode::invalid, "F/a.txt is empty");
  options.path = write("a.txt", "abcabcabc");
  expect_error(ErrorCode::invalid,
               "the last 0.1 of F/a.txt (validation_fraction) has 1 characters; with context = 3 "
               "at least 4 are needed");
  options.validation_fraction = 0.8;
  expect_error(ErrorCode::invalid,
               "the training part of F/a.txt has 1 characters; with context = 3 at least 4 are "
               "needed");
  options.validation_fraction = 0;
  expect_error(ErrorCode::invalid, "validation_fraction is 0; it must be above 0 and below 1");
  options.context = 0;
  expect_error(ErrorCode::invalid, "context is 0; it must be at least 1");
}

// ---- a program's own ----

TEST_F(LoadData, TakesAProgramsOwnDatasets) {
  options.own_train =
      std::make_shared<TensorDataset>(torch::zeros({6, 2, 3}), torch::tensor({0, 1, 4, 0, 0, 0}));
  const auto split = load_data(options, 1);
  EXPECT_EQ(split.spec.input_shape, (Shape{2, 3}));
  EXPECT_TRUE(split.spec.classes);
  EXPECT_FALSE(split.spec.tokens);
  EXPECT_EQ(split.spec.outputs, 5);
  EXPECT_EQ(split.train->size(), 5);
  EXPECT_EQ(split.validation->size(), 1);
  options.own_validation = options.own_train;
  options.classes = 7;
  const auto both = load_data(options, 1);
  EXPECT_EQ(both.train, options.own_train);
  EXPECT_EQ(both.validation, options.own_validation);
  EXPECT_EQ(both.spec.outputs, 7);
}

TEST_F(LoadData, InfersTokensAndValues) {
  options.own_train = std::make_shared<TensorDataset>(torch::tensor({{1, 8}, {2, 3}}),
                                                      torch::tensor({{8, 1}, {3, 9}}));
  const auto tokens = load_data(options, 1).spec;
  EXPECT_TRUE(tokens.tokens);
  EXPECT_EQ(tokens.vocabulary, 10);
  EXPECT_EQ(tokens.outputs, 10);
  options.own_train = std::make_shared<TensorDataset>(torch::zeros({4, 5}), torch::zeros({4, 3}));
  const auto values = load_data(options, 1).spec;
  EXPECT_FALSE(values.classes);
  EXPECT_EQ(values.outputs, 3);
}

/// Targets 0 … 6, the largest only in the last sample.
class Lazy : public Dataset {
 public:
  std::int64_t size() const override { return 700; }
  Batch gather(std::span<const std::int64_t> indices) const override {
    const auto target = torch::tensor(std::vector(indices.begin(), indices.end())) / 699.0 * 6;
    return {torch::zeros({target.size(0), 2}), target.to(torch::kInt64)};
  }
};

TEST_F(LoadData, CountsTheClassesOfAnyDataset) {
  options.own_train = std::make_shared<Lazy>();
  EXPECT_EQ(load_data(options, 1).spec.outputs, 7);
}

TEST_F(LoadData, RefusesNegativeClassesAndEmptySets) {
  options.own_train = std::make_shared<TensorDataset>(torch::zeros({2, 1}), torch::tensor({-1, 1}));
  expect_error(ErrorCode::invalid, "the dataset has the class -1; they must count from 0");
  options.own_train = std::make_shared<TensorDataset>(torch::zeros({0, 1}), torch::zeros({0}));
  expect_error(ErrorCode::invalid, "the training set is empty");
}

}  // namespace
}  // namespace cohort::data
