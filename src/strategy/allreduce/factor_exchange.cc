#include "strategy/allreduce/factor_exchange.h"

#include <algorithm>
#include <cstring>

#include "base/fail.h"
#include "base/log.h"
#include "kernel/machine.h"

namespace cohort::strategy {
namespace {

std::int64_t rows_in(const tensor::GradientSink& sink) {
  std::int64_t rows = 0;
  for (const tensor::GradientFactors& factors : sink.factors()) rows += factors.inputs.size(0);
  return rows;
}

float* copy_matrix(const torch::Tensor& matrix, float* to) {
  const auto count = static_cast<std::size_t>(matrix.numel());
  if (count > 0) std::memcpy(to, matrix.data_ptr<float>(), count * sizeof(float));
  return to + count;
}

/// What a product's last bits depend on.
std::string kernels_in_use() {
  return fmt::format("OpenBLAS {}, {} threads", kernel::openblas_core(), at::get_num_threads());
}

bool all_have_the_same_kernels(WorkerSums& sums) {
  const std::string own = kernels_in_use();
  const auto all = sums.gather<std::byte>(std::as_bytes(std::span(own)));
  return std::ranges::all_of(all,
                             [&](const auto& one) { return std::ranges::equal(one, all.front()); });
}

/// Factors of others must be waited for before they are multiplied, and with small weights the time
/// of messages is all that counts.
constexpr std::int64_t kLargeWeight = 1 << 20;

/// What is left of the gradients is too little for codecs to bother with.
constexpr double kLittle = 0.1;

/// (W-1) · b · (in + out), the factors, as a part of what a ring would send of the product; nothing
/// where the gradient is no product.
std::optional<double> relative_size(const torch::Tensor& weight, const StrategyContext& context) {
  const auto rows_per_sample = tensor::ProductMark::rows_per_sample(weight);
  if (!rows_per_sample || weight.dim() != 2) return std::nullopt;
  const auto out = static_cast<double>(weight.size(0));
  const auto in = static_cast<double>(weight.size(1));
  const auto rows = static_cast<double>(context.samples * *rows_per_sample);
  const double world = context.engine.world();
  return rows * (in + out) * world / (2 * in * out);
}

bool pays(const torch::Tensor& weight, const StrategyContext& context) {
  const auto size = relative_size(weight, context);
  if (!size || context.engine.world() == 1 || context.samples == 0) return false;
  const auto& wanted = context.options.factors;
  return wanted ? *wanted && *size <= 0.5 : *size <= 0.2 && weight.numel() >= kLargeWeight;
}

}  // namespace

std::span<float> FactorExchange::Stacked::slice(std::vector<float>& all, std::size_t rank,
                                                std::int64_t width) const {
  return std::span(all).subspan(
      static_cast<std::size_t>(first_row[rank] * width),
      static_cast<std::size_t>((first_row[rank + 1] - first_row[rank]) * width));
}

// All ranks come to the same choice: it follows from shapes and numbers that all have, and whether
// the kernels are the same is asked of all. With factors every rank makes the whole product itself;
// were the products not the same to the bit, models would drift apart without anybody noticing.
std::vector<bool> FactorExchange::choose(const tensor::FlatSpace& space,
                                         const StrategyContext& context, WorkerSums& sums) {
  const std::size_t parameters = space.layout().parameters.entries.size();
  std::vector<bool> chosen(parameters);
  for (std::size_t i = 0; i < parameters; ++i) chosen[i] = pays(space.parameter(i), context);
  if (std::ranges::count(chosen, true) > 0 && !all_have_the_same_kernels(sums)) {
    log_warn(
        "workers compute with different kernels (this one with {}): gradients travel, not "
        "their factors",
        kernels_in_use());
    chosen.assign(parameters, false);
  }
  return chosen;
}

bool FactorExchange::suffice(const StrategyContext& context) {
  double all = 0, others = 0;
  for (const NamedTensor& parameter : context.model.parameters()) {
    if (!parameter.tensor.requires_grad()) continue;
    const auto count = static_cast<double>(parameter.tensor.numel());
    all += count;
    if (!pays(parameter.tensor, context)) others += count;
  }
  return others <= kLittle * all;
}

FactorExchange::FactorExchange(tensor::FlatSpace& space, transport::Transport& transport,
                               const Options& options)
    : space_(space),
      transport_(transport),
      samples_(options.samples),
      stacked_(options.parameters.size()) {
  for (std::size_t i = 0; i < stacked_.size(); ++i) {
    if (!options.parameters[i]) continue;
    const torch::Tensor& weight = space.parameter(i);
    stacked_[i].out = weight.size(0);
    stacked_[i].in = weight.size(1);
    stacked_[i].rows_per_sample = tensor::ProductMark::rows_per_sample(weight).value();
    space.sink(i).keep_factors();
  }
}

void FactorExchange::exchange(std::size_t parameter, transport::Tag tag, Deadline deadline) {
  try {
    exchange_rows(parameter, tag, deadline);
    exchange_factors(parameter, tag, deadline);
  } catch (...) {
    transport_
        .close();  // What is under way uses memory of this object; and the others learn of it.
    throw;
  }
}

// All messages of all peers are under way at once; empty ones are left out, as both sides know the
// rows of each.
void FactorExchange::exchange_factors(std::size_t parameter, transport::Tag tag,
                                      Deadline deadline) {
  place_own(parameter);
  Stacked& stacked = stacked_[parameter];
  const auto own = static_cast<std::size_t>(transport_.rank());
  std::vector<transport::OperationPtr> operations;
  const auto start = [&](std::size_t peer, transport::Tag of, std::span<float> theirs,
                         std::span<float> ours) {
    // Receives first: see Transport.
    if (!theirs.empty()) {
      operations.push_back(
          transport_.irecv(static_cast<int>(peer), of, std::as_writable_bytes(theirs)));
    }
    if (!ours.empty()) {
      operations.push_back(transport_.isend(static_cast<int>(peer), of, std::as_bytes(ours)));
    }
  };
  for (std::size_t peer = 0; peer + 1 < stacked.first_row.size(); ++peer) {
    if (peer == own) continue;
    start(peer, tag + 1, stacked.outputs_of(peer), stacked.outputs_of(own));
    start(peer, tag + 2, stacked.inputs_of(peer), stacked.inputs_of(own));
  }
  for (const transport::OperationPtr& operation : operations) transport_.wait(*operation, deadline);
}

/// How many rows each has; the last batch of an epoch may be short, and some have none.
void FactorExchange::exchange_rows(std::size_t parameter, transport::Tag tag, Deadline deadline) {
  const auto world = static_cast<std::size_t>(transport_.size());
  const auto own = static_cast<std::size_t>(transport_.rank());
  std::vector<std::int64_t>& rows = rows_;
  rows.assign(world, 0);
  rows[own] = rows_in(space_.sink(parameter));
  std::vector<transport::OperationPtr> operations;
  for (std::size_t peer = 0; peer < world; ++peer) {
    if (peer == own) continue;
    operations.push_back(transport_.irecv(static_cast<int>(peer), tag,
                                          std::as_writable_bytes(std::span(&rows[peer], 1))));
    operations.push_back(
        transport_.isend(static_cast<int>(peer), tag, std::as_bytes(std::span(&rows[own], 1))));
  }
  for (const transport::OperationPtr& operation : operations) transport_.wait(*operation, deadline);

  Stacked& stacked = stacked_[parameter];
  const std::int64_t most = samples_ * stacked.rows_per_sample;
  stacked.first_row.assign(1, 0);
  for (std::size_t rank = 0; rank < world; ++rank) {
    if (rows[rank] < 0 || rows[rank] > most) {
      fail(ErrorCode::corrupt, "rank {} says that it has {} rows of a batch of {}", rank,
           rows[rank], most);
    }
    stacked.first_row.push_back(stacked.first_row.back() + rows[rank]);
  }
}

// Where several passes made the step's gradient (or one layer was used several times) there are
// several pairs of factors, one below the other.
void FactorExchange::place_own(std::size_t parameter) {
  Stacked& stacked = stacked_[parameter];
  const auto all = static_cast<std::size_t>(stacked.first_row.back());
  stacked.outputs.resize(all * static_cast<std::size_t>(stacked.out));
  stacked.inputs.resize(all * static_cast<std::size_t>(stacked.in));
  const auto own = static_cast<std::size_t>(transport_.rank());
  float* outputs = stacked.outputs_of(own).data();
  float* inputs = stacked.inputs_of(own).data();
  for (const tensor::GradientFactors& factors : space_.sink(parameter).factors()) {
    outputs = copy_matrix(factors.outputs, outputs);
    inputs = copy_matrix(factors.inputs, inputs);
  }
}

void FactorExchange::multiply(std::size_t parameter) {
  const torch::NoGradGuard no_grad;
  Stacked& stacked = stacked_[parameter];
  torch::Tensor place = space_.sink(parameter).view();
  const std::int64_t rows = stacked.first_row.back();
  if (rows == 0) {
    place.zero_();
    return;
  }
  const auto outputs = torch::from_blob(stacked.outputs.data(), {rows, stacked.out});
  const auto inputs = torch::from_blob(stacked.inputs.data(), {rows, stacked.in});
  at::mm_out(place, outputs.t(), inputs);
}

}  // namespace cohort::strategy
