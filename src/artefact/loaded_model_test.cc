// Proves the public load_model(): raw rows give what the plain forward pass gives, for tables, text
// and tokens and for the layers of every preset; and what it refuses. Models are saved untrained.
#include <cohort/loaded_model.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "artefact/artefact_test_support.h"
#include "base/fail.h"
#include "formats/csv_reader.h"
#include "model/architecture.h"

namespace cohort::artefact {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <class Call>
std::string refusal_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// The fields of every sample of a table, without the target, which is the last.
std::vector<std::vector<std::string>> raw_rows(const std::string& path) {
  formats::CsvReader reader(path);
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> fields;
  for (reader.next(fields); reader.next(fields);) {
    rows.emplace_back(fields.begin(), fields.end() - 1);
  }
  return rows;
}

TEST(LoadedModel, TakesRawRowsAndGivesWhatThePlainForwardPassGives) {
  const TemporaryFolder folder;
  DataOptions options = test_table(folder);
  options.validation_path = options.path;
  const SavedModel saved(options, test_layers());
  LoadedModel loaded = load_model(saved.dir());
  EXPECT_THAT(loaded.class_names(), ElementsAre("oak", "pine",
                                                "\xfc"
                                                "lme"));
  EXPECT_THAT(loaded.feature_names(), ElementsAre("weight", "height"));
  EXPECT_TRUE(loaded.predicts_classes());

  const auto rows = raw_rows(options.path);
  const Batch whole = saved.data.validation->gather(data::all_rows(30));
  EXPECT_TRUE(loaded.preprocess(rows).equal(whole.input)) << "preprocessing has drifted";
  const torch::NoGradGuard no_grad;
  const torch::Tensor expected = saved.model->forward(whole.input);
  EXPECT_TRUE(loaded.forward(whole.input).equal(expected));
  const auto predictions = loaded.predict_batch(rows);
  const torch::Tensor scores = torch::softmax(expected, 1);
  ASSERT_EQ(predictions.size(), 30u);
  for (std::int64_t i = 0; i < 30; ++i) {
    const Prediction& prediction = predictions[static_cast<std::size_t>(i)];
    EXPECT_EQ(prediction.class_id, expected[i].argmax().item<std::int64_t>());
    EXPECT_EQ(prediction.class_name,
              loaded.class_names()[static_cast<std::size_t>(prediction.class_id)]);
    EXPECT_EQ(prediction.scores[1], scores[i][1].item<float>());
  }
}

TEST(LoadedModel, TakesNumbersAndOneRowToo) {
  const TemporaryFolder folder;
  const SavedModel saved(test_table(folder), test_layers());
  LoadedModel loaded = load_model(saved.dir());
  const Prediction by_text = loaded.predict(TextRow{"1010", "0.25"});
  const Prediction by_number = loaded.predict(NumberRow{1010, 0.25});
  EXPECT_EQ(by_text.scores, by_number.scores);
  EXPECT_THAT(refusal_of([&] {
                loaded.predict_batch(std::vector<TextRow>{{"1", "2"}, {"1", "x"}});
              }),
              HasSubstr("row 2, column \"height\": \"x\" is not a number"));
  EXPECT_THAT(refusal_of([&] {
                loaded.predict_batch(std::vector<NumberRow>{{1.0, 2.0}, {1.0}});
              }),
              HasSubstr("row 2: it has 1 numbers, expected 2"));
}

TEST(LoadedModel, LeavesAProgramsRandomNumbersAlone) {
  const TemporaryFolder folder;
  const SavedModel saved(test_table(folder), test_layers());
  torch::manual_seed(4);
  const torch::Tensor expected = torch::rand({3});
  torch::manual_seed(4);
  const LoadedModel loaded = load_model(saved.dir());
  EXPECT_TRUE(torch::rand({3}).equal(expected));
}

TEST(LoadedModel, IsWhatEveryLayerWas) {
  DataOptions digits;
  digits.kind = "generated";
  digits.samples = 20;
  for (const char* preset : {"lenet", "resnet8", "mlp"}) {
    ModelOptions options;
    options.preset = preset;
    const SavedModel saved(digits, options);
    LoadedModel loaded = load_model(saved.dir());
    const torch::NoGradGuard no_grad;
    const Batch batch = saved.data.validation->gather(data::all_rows(2));
    EXPECT_TRUE(loaded.forward(batch.input).equal(saved.model->forward(batch.input))) << preset;
    const NumberRow dark(784, 0);
    EXPECT_EQ(loaded.preprocess(std::vector<NumberRow>(1, dark))[0][0][0][0].item<float>(),
              -static_cast<float>(0.1307 * 255) * static_cast<float>(1 / (0.3081 * 255)));
    EXPECT_EQ(loaded.predict(dark).scores.size(), 10u);
  }
}

TEST(LoadedModel, MayNestAsDeepAsAJob) {
  const TemporaryFolder folder;
  LayerOptions layer;
  layer.type = "linear";
  layer.out = 2;
  for (int level = 1; level < model::kDeepestLayers; ++level) {
    LayerOptions outer;
    outer.type = "residual";
    outer.layers = {layer};
    layer = outer;
  }
  LayerOptions last;
  last.type = "linear";
  ModelOptions model;
  model.layers = {layer, last};
  const SavedModel saved(test_table(folder), model);
  EXPECT_NO_THROW(load_model(saved.dir()));
}

TEST(LoadedModel, PredictsTheNextCharacter) {
  const TemporaryFolder folder;
  DataOptions options;
  options.kind = "text";
  options.context = 4;
  options.path = write_test_file(folder.path() / "t.txt", std::string(20, 'a') +
                                                              "bcabcab\xe9"
                                                              "caabbcabc");
  options.validation_fraction = 0.3;
  ModelOptions model;
  model.preset = "gpt-mini";
  model.width = 8;
  model.depth = 1;
  model.heads = 2;
  const SavedModel saved(options, model);
  LoadedModel loaded = load_model(saved.dir());
  EXPECT_THAT(loaded.class_names(), ElementsAre("a", "b", "c", "\xe9"));
  const Prediction next = loaded.predict(TextRow{"abca"});
  EXPECT_EQ(next.class_name, loaded.class_names()[static_cast<std::size_t>(next.class_id)]);
  EXPECT_THAT(refusal_of([&] { loaded.predict(TextRow{"abcd"}); }),
              HasSubstr("the character \"d\" does not occur in the training data"));
  EXPECT_THAT(refusal_of([&] { loaded.predict(TextRow{"abc"}); }),
              HasSubstr("it has 3 characters, expected 4"));
}

TEST(LoadedModel, TakesOnlyTokensThatItHas) {
  DataOptions options;
  options.own_train = std::make_shared<TensorDataset>(torch::randint(0, 9, {8, 3}),
                                                      torch::arange(24).remainder(9).view({8, 3}));
  ModelOptions model;
  model.layers = {{.type = "embedding", .out = 4}, {.type = "linear"}};
  const SavedModel saved(options, model);
  LoadedModel loaded = load_model(saved.dir());
  EXPECT_EQ(loaded.predict(NumberRow{0, 8, 1}).scores,
            loaded.predict(TextRow{"0", "8", "1"}).scores);
  for (const double token : {-1.0, 9.0, 0.5, 1e18}) {
    EXPECT_THAT(refusal_of([&] {
                  loaded.predict(NumberRow{0, token, 1});
                }),
                HasSubstr("no token; they are whole numbers from 0 to 8"));
  }
}

TEST(LoadedModel, ThatAProgramMakesGetsItsWeights) {
  const TemporaryFolder folder;
  const SavedModel saved(test_table(folder), test_layers());
  const auto make = [&](std::int64_t hidden) {
    return [&, hidden] {
      ModelOptions options = test_layers();
      options.layers[0].out = hidden;
      return model::make_model(options, saved.data.spec, 99);
    };
  };
  LoadedModel loaded = load_model(saved.dir(), make(5));
  const Batch batch = saved.data.validation->gather(data::all_rows(2));
  const torch::NoGradGuard no_grad;
  EXPECT_TRUE(loaded.forward(batch.input).equal(saved.model->forward(batch.input)));
  EXPECT_THAT(refusal_of([&] { load_model(saved.dir(), make(6)); }),
              HasSubstr("are of another model: tensor \"0.weight\" has the shape [5, 2] there"));
}

}  // namespace
}  // namespace cohort::artefact
