#include <optional>

#include "model/functions/functions.h"
#include "model/layers/layer.h"
#include "tensor/table_rows.h"

namespace cohort::model {
namespace {

/// A learned vector for each token, plus one for each position where asked. With `sparse` the table
/// is marked as one of which a step touches few rows (TableMark in tensor/table_rows.h): parameter
/// servers then keep it, and workers fetch only the rows they need. Without such a strategy the
/// mark changes nothing.
class EmbeddingLayer : public Layer {
 public:
  explicit EmbeddingLayer(const LayerPlan& layer) {
    const auto& options = layer.options;
    torch::nn::Embedding tokens(options.vocabulary, options.out);
    weight_ = register_parameter("weight", tokens->weight);
    if (options.sparse) table_.emplace(weight_);
    if (options.positions) {
      torch::nn::Embedding positions(layer.input.sizes[0], options.out);
      positions_ = register_parameter("positions", positions->weight);
    }
  }

  torch::Tensor forward(const torch::Tensor& input) override {
    auto embedded = apply_embedding(input, weight_);
    return positions_.defined() ? embedded.add_(positions_) : embedded;
  }

  bool output_may_be_overwritten() const override { return true; }

 private:
  torch::Tensor weight_;
  torch::Tensor positions_;
  std::optional<tensor::TableMark> table_;  ///< Of weight_, where it is sparse.
};

void plan_embedding(LayerPlan& layer, const tensor::DataSpec& spec) {
  if (!layer.input.tokens) {
    fail_layer(layer, "it needs tokens (ids), but gets {} floats; it suits data of kind text",
               to_string(layer.input));
  }
  auto& options = layer.options;
  if (options.vocabulary == 0) options.vocabulary = spec.vocabulary;
  if (options.vocabulary < spec.vocabulary) {
    fail_layer(layer, "vocabulary = {} is too small: the data has {} different tokens",
               options.vocabulary, spec.vocabulary);
  }
  require_positive(layer, "out", options.out, "it is the length of a token's vector, 1 or more");
  count_weights(layer, {options.vocabulary, options.out});
  if (options.positions) count_weights(layer, {layer.input.sizes.at(0), options.out});
  layer.output = Shape{{layer.input.sizes.at(0), options.out}, false};
}

std::shared_ptr<Layer> build_embedding(const LayerPlan& layer) {
  return std::make_shared<EmbeddingLayer>(layer);
}

}  // namespace

LayerType embedding_type() {
  return {
      "embedding", {"out", "vocabulary", "positions", "sparse"}, plan_embedding, build_embedding};
}

}  // namespace cohort::model
