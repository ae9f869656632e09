#include "parallel/gradient_average.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/fail.h"
#include "base/names.h"
#include "collective/compressed/gradient_exchange.h"
#include "compression/codec.h"
#include "parallel/group_state.h"

namespace cohort::parallel {
namespace {

/// A rank without weight gives zeros, whatever its gradients are: those of no rows are NaN.
void weigh(const std::vector<torch::Tensor>& flats, double weight) {
  const torch::NoGradGuard no_grad;
  for (torch::Tensor flat : flats) weight > 0 ? flat.mul_(weight) : flat.zero_();
}

double own_weight(const Group& group, const Weights& weights) {
  return weights.of_rank[static_cast<std::size_t>(group.rank())];
}

/// Where all ranks count alike the sum is made of the gradients as they are, and divided once.
class ByAllReduce : public GradientAverage {
 public:
  explicit ByAllReduce(const Group& group) : group_(group) {}

  void average(const std::vector<torch::Tensor>& flats, const Weights& weights) override {
    if (!weights.equal) weigh(flats, own_weight(group_, weights));
    for (const torch::Tensor& flat : flats) {
      group_.all_reduce(flat, weights.equal ? Reduce::mean : Reduce::sum);
    }
  }

 private:
  const Group group_;
};

class ByOwnReducer : public GradientAverage {
 public:
  ByOwnReducer(const Group& group, std::shared_ptr<GradientReducer> reducer)
      : group_(group), reducer_(std::move(reducer)) {}

  void average(const std::vector<torch::Tensor>& flats, const Weights& weights) override {
    weigh(flats, own_weight(group_, weights));
    for (const torch::Tensor& flat : flats) reducer_->add(flat);
    reducer_->finish();
  }

 private:
  const Group group_;
  const std::shared_ptr<GradientReducer> reducer_;
};

/// Gradients of float32 travel encoded; others, which are few, as they are.
class ByExchange : public GradientAverage {
 public:
  ByExchange(const Group& group, const DataParallelOptions& options, const GradientMemory& memory)
      : group_(group),
        others_(group),
        transport_(GroupAccess::communicator(group).connect()),
        exchange_(collective::make_gradient_exchange(
            {.transport = *transport_,
             .shape = memory.shape_of(torch::kFloat32),
             .compression = options.compression,
             .timeout = GroupAccess::communicator(group).timeout()})) {}

  void average(const std::vector<torch::Tensor>& flats, const Weights& weights) override {
    std::vector<torch::Tensor> others;
    for (const torch::Tensor& flat : flats) {
      if (flat.scalar_type() == torch::kFloat32) {
        weigh({flat}, own_weight(group_, weights));
        exchange_->sum({flat.data_ptr<float>(), static_cast<std::size_t>(flat.numel())});
      } else {
        others.push_back(flat);
      }
    }
    others_.average(others, weights);
  }

 private:
  const Group group_;
  ByAllReduce others_;
  const std::unique_ptr<transport::Transport> transport_;
  const std::unique_ptr<collective::GradientExchange> exchange_;
};

}  // namespace

void check_options(const DataParallelOptions& options) {
  if (options.compression.kind == "none") return;
  if (options.reducer) {
    fail(ErrorCode::invalid, "DataParallelOptions: a reducer of one's own has no compression");
  }
  check_known("compression", options.compression.kind, compression::codec_kinds());
}

std::unique_ptr<GradientAverage> make_gradient_average(const Group& group,
                                                       const DataParallelOptions& options,
                                                       const GradientMemory& memory) {
  if (options.reducer) return std::make_unique<ByOwnReducer>(group, options.reducer);
  if (options.compression.kind == "none") return std::make_unique<ByAllReduce>(group);
  return std::make_unique<ByExchange>(group, options, memory);
}

}  // namespace cohort::parallel
