#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

/// The four networks of `cohort bench train` as a user of LibTorch writes them by hand. They must
/// be the same as those of ddp_train.py and of src/bench/train_worker.cc, layer by layer:
/// docs/benchmarks.md has their sizes.

namespace peer {

inline torch::nn::Sequential mlp(const std::vector<std::int64_t>& widths) {
  torch::nn::Sequential net;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    if (i > 0) net->push_back(torch::nn::ReLU());
    net->push_back(torch::nn::Linear(widths[i], widths[i + 1]));
  }
  return net;
}

inline torch::nn::Sequential convolution() {
  const auto conv = [](int in, int out) {
    return torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, 3).padding(1));
  };
  return torch::nn::Sequential(conv(1, 32), torch::nn::ReLU(), torch::nn::MaxPool2d(2),
                               conv(32, 64), torch::nn::ReLU(), torch::nn::MaxPool2d(2),
                               torch::nn::Flatten(), torch::nn::Linear(64 * 7 * 7, 128),
                               torch::nn::ReLU(), torch::nn::Linear(128, 10));
}

/// A causal block that normalises before each of its two branches.
class BlockImpl : public torch::nn::Module {
 public:
  BlockImpl(std::int64_t width, std::int64_t heads)
      : heads_(heads),
        norm1_(register_module("norm1", layer_norm(width))),
        qkv_(register_module("qkv", torch::nn::Linear(width, 3 * width))),
        out_(register_module("out", torch::nn::Linear(width, width))),
        norm2_(register_module("norm2", layer_norm(width))),
        up_(register_module("up", torch::nn::Linear(width, 4 * width))),
        down_(register_module("down", torch::nn::Linear(4 * width, width))) {}

  torch::Tensor forward(torch::Tensor x) {
    x = x + attention(norm1_(x));
    return x + down_(torch::gelu(up_(norm2_(x))));
  }

 private:
  static torch::nn::LayerNorm layer_norm(std::int64_t width) {
    return torch::nn::LayerNorm(torch::nn::LayerNormOptions({width}));
  }

  torch::Tensor attention(const torch::Tensor& x) {
    const auto batch = x.size(0), tokens = x.size(1), width = x.size(2);
    const auto head = width / heads_;
    const auto parts = qkv_(x).view({batch, tokens, 3, heads_, head}).permute({2, 0, 3, 1, 4});
    auto scores =
        torch::matmul(parts[0], parts[1].transpose(-2, -1)) / std::sqrt(static_cast<double>(head));
    if (!mask_.defined()) mask_ = torch::ones({tokens, tokens}, torch::kBool).triu(1);
    scores = scores.masked_fill(mask_, -std::numeric_limits<float>::infinity());
    const auto mixed = torch::matmul(torch::softmax(scores, -1), parts[2]);
    return out_(mixed.transpose(1, 2).reshape({batch, tokens, width}));
  }

  std::int64_t heads_;
  torch::nn::LayerNorm norm1_;
  torch::nn::Linear qkv_, out_;
  torch::nn::LayerNorm norm2_;
  torch::nn::Linear up_, down_;
  torch::Tensor mask_;
};
TORCH_MODULE(Block);

class TransformerImpl : public torch::nn::Module {
 public:
  TransformerImpl(std::int64_t vocabulary, std::int64_t tokens, std::int64_t width)
      : tokens_(register_module("tokens", torch::nn::Embedding(vocabulary, width))),
        positions_(register_parameter("positions", torch::randn({tokens, width}) * 0.02)),
        blocks_(register_module("blocks", torch::nn::Sequential())),
        norm_(register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})))),
        head_(register_module("head", torch::nn::Linear(width, vocabulary))) {
    for (int i = 0; i < 4; ++i) blocks_->push_back(Block(width, 4));
  }

  torch::Tensor forward(torch::Tensor ids) {
    return head_(norm_(blocks_->forward(tokens_(ids) + positions_)));
  }

 private:
  torch::nn::Embedding tokens_;
  torch::Tensor positions_;
  torch::nn::Sequential blocks_;
  torch::nn::LayerNorm norm_;
  torch::nn::Linear head_;
};
TORCH_MODULE(Transformer);

/// A network, and random data for it that lies in memory.
struct Task {
  torch::nn::Sequential net;
  torch::Tensor input, target;
  std::int64_t batch = 64;
};

/// Throws std::invalid_argument for a name it does not know.
inline Task make_task(const std::string& name) {
  constexpr int kSamples = 2048;
  const auto classes = torch::randint(10, {kSamples}, torch::kLong);
  if (name == "mlp") return {mlp({784, 512, 256, 10}), torch::randn({kSamples, 784}), classes};
  if (name == "wide-mlp") {
    return {mlp({784, 4096, 2048, 10}), torch::randn({kSamples, 784}), classes};
  }
  if (name == "conv") return {convolution(), torch::randn({kSamples, 1, 28, 28}), classes};
  if (name == "transformer") {
    const auto ids = torch::randint(1000, {256, 129}, torch::kLong);
    return {torch::nn::Sequential(Transformer(1000, 128, 256)), ids.slice(1, 0, 128).contiguous(),
            ids.slice(1, 1, 129).contiguous(), 8};
  }
  throw std::invalid_argument("unknown network " + name);
}

}  // namespace peer
