#pragma once

#include <torch/torch.h>

#include <memory>
#include <vector>

#include "base/random.h"
#include "cluster/work_board.h"
#include "model/functions/embedding_function.h"
#include "tensor/table_rows.h"

namespace cohort {

/// A small regression over words. Between its two matrices stands a table, which servers of
/// gradients keep apart; no size is a multiple of the padding. The buffer follows the parameters,
/// so that it is the same on workers whose parameters are.
struct WordNet : torch::nn::Module {
  static constexpr std::int64_t kWords = 40;
  static constexpr std::int64_t kContext = 3;
  static constexpr std::int64_t kWidth = 5;

  explicit WordNet(int stream) {
    hidden = register_parameter("hidden", random({kContext * kWidth, 7}, stream));
    words = register_parameter("words", random({kWords, kWidth}, stream + 1));
    out = register_parameter("out", random({7, 1}, stream + 2));
    seen = register_buffer("seen", torch::zeros({3}));
    mark = std::make_unique<TableMark>(words);
  }

  torch::Tensor forward(const torch::Tensor& ids) {
    if (is_training()) {
      const torch::NoGradGuard no_gradients;
      seen.mul_(0.75).add_(hidden.sum());
    }
    const auto rows = apply_embedding(ids, words).view({ids.size(0), kContext * kWidth});
    return torch::matmul(torch::tanh(torch::matmul(rows, hidden)), out);
  }

  static torch::Tensor random(std::vector<std::int64_t> shape, int stream) {
    Random numbers(5, static_cast<std::uint64_t>(stream));
    torch::Tensor values = torch::zeros(shape);
    auto* data = values.data_ptr<float>();
    for (std::int64_t i = 0; i < values.numel(); ++i) {
      data[i] = static_cast<float>(numbers.uniform(-0.5, 0.5));
    }
    return values;
  }

  torch::Tensor hidden, words, out, seen;
  std::unique_ptr<TableMark> mark;
};

/// The same for everybody: the rows of any part of any step's batch.
struct WordData {
  static constexpr std::int64_t kRows = 96;
  static constexpr std::int64_t kBatch = 24;

  WordData() {
    Random numbers(9);
    auto* data = ids.data_ptr<std::int64_t>();
    for (std::int64_t i = 0; i < ids.numel(); ++i) {
      data[i] = static_cast<std::int64_t>(numbers.below(WordNet::kWords));
    }
    target = torch::tanh(ids.to(torch::kFloat32).sum(1, true) / 60 - 1);
  }

  static torch::Tensor rows(const torch::Tensor& of, const Claim& claim, std::int64_t parts) {
    const std::int64_t size = kBatch / parts;
    const std::int64_t begin = claim.step * kBatch % kRows + claim.part * size;
    return of.slice(0, begin, begin + size);
  }

  torch::Tensor ids = torch::zeros({kRows, WordNet::kContext}, torch::kInt64);
  torch::Tensor target;
};

}  // namespace cohort
