#include "collective/compressed/gradient_exchange.h"

#include <algorithm>

#include "collective/collectives.h"
#include "collective/sum_kernel.h"
#include "compression/low_rank.h"

namespace cohort::collective {
namespace {

/// For lowrank, as PowerSGD does it (Vogels et al. 2019): a matrix M of gradients is taken to be
/// nearly *left* times *right* transposed, both of `rank` columns. What is no matrix (biases) is
/// *plain* and travels as it is. One sum:
///
///   1. left  = M · (the right factors of the step before), on each rank; summed with what is plain
///   2. left is made orthonormal: the same on all ranks, as the sum is
///   3. right = Mᵀ · left, on each rank; summed: what left can say of the sum of all M
///   4. the result is left · (sum of right)ᵀ; the rest is M - left · (own right)ᵀ
///
/// The result is the best that the common left factors can say of the sum, and a rank sends no more
/// with many ranks than with two. All ranks must begin with the same right factors: from one seed,
/// or after recall() with rank 0's.
class LowrankExchange : public GradientExchange {
 public:
  explicit LowrankExchange(const ExchangeOptions& options)
      : executor_(options.transport),
        algorithm_(options.algorithm),
        timeout_(options.timeout),
        factors_(options.shape, options.compression.rank, options.seed),
        keeps_rest_(options.compression.error_feedback),
        rest_(options.shape.count),
        values_(options.shape.count),
        left_and_plain_(factors_.left_size() + factors_.plain_size()),
        own_right_(factors_.right_size()),
        right_(factors_.right_size()) {}

  void sum(std::span<float> gradients) override {
    std::ranges::copy(gradients, values_.begin());
    if (keeps_rest_) add_to(values_, rest_);
    const auto left = std::span(left_and_plain_).first(factors_.left_size());
    const auto plain = std::span(left_and_plain_).subspan(factors_.left_size());
    factors_.project(values_, left);
    factors_.gather_plain(values_, plain);
    sum_over_ranks(left_and_plain_);
    factors_.orthonormalise(left);
    factors_.project_back(values_, left, own_right_);
    std::ranges::copy(own_right_, right_.begin());
    sum_over_ranks(right_);
    factors_.start_from(right_);
    write_sum(left, plain, gradients);
    take_off_own(left, plain);
    std::swap(rest_, values_);
  }

  void add_rest(std::span<float> gradients) const override {
    if (keeps_rest_) add_to(gradients, rest_);
  }

  ExchangeMemory memory() const override {
    return {.rest = keeps_rest_ ? rest_ : std::vector<float>(),
            .velocity = {},
            .codec = factors_.memory()};
  }

  // The factors must be the same on all ranks.
  void recall(const ExchangeMemory& memory) override {
    if (memory.rest.size() == rest_.size()) rest_ = memory.rest;
    factors_.recall(memory.codec);
    compression::CodecMemory first = factors_.memory();
    const CollectiveOptions options{.deadline = Deadline::in(timeout_)};
    broadcast(executor_, first.numbers, 0, options);
    broadcast(executor_, first.floats, 0, options);
    factors_.recall(first);
  }

 private:
  void sum_over_ranks(std::span<float> floats) {
    all_reduce(executor_, floats, {.deadline = Deadline::in(timeout_), .algorithm = algorithm_});
  }

  void write_sum(std::span<const float> left, std::span<const float> plain,
                 std::span<float> gradients) const {
    factors_.clear_matrices(gradients);
    factors_.add_product({left, right_}, gradients);
    factors_.for_each_plain(gradients, plain, [](std::span<float> to, std::span<const float> from) {
      std::ranges::copy(from, to.begin());
    });
  }

  /// What this rank's own factors say has travelled; what is left in values_ has not.
  void take_off_own(std::span<const float> left, std::span<const float> plain) {
    factors_.subtract_product({left, own_right_}, values_);
    factors_.for_each_plain(
        std::span(values_), plain,
        [](std::span<float> rest, std::span<const float>) { std::ranges::fill(rest, 0.0F); });
  }

  Executor executor_;
  std::string algorithm_;
  Duration timeout_;
  compression::LowRank factors_;
  bool keeps_rest_;
  std::vector<float> rest_;    // What has not travelled.
  std::vector<float> values_;  // With the gradients of this step.
  std::vector<float> left_and_plain_;
  std::vector<float> own_right_;
  std::vector<float> right_;
};

}  // namespace

std::unique_ptr<GradientExchange> make_lowrank_exchange(const ExchangeOptions& options) {
  return std::make_unique<LowrankExchange>(options);
}

}  // namespace cohort::collective
