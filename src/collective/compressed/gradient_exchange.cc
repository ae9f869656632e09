#include "collective/compressed/gradient_exchange.h"

#include <fmt/format.h>

#include "base/random.h"
#include "collective/collectives.h"
#include "compression/codec.h"

namespace cohort::collective {
namespace {

/// The plain way, for "none": an all-reduce of the floats as they are. Nothing is left out, so
/// there is nothing to keep.
class WholeExchange : public GradientExchange {
 public:
  explicit WholeExchange(const ExchangeOptions& options)
      : executor_(options.transport), algorithm_(options.algorithm), timeout_(options.timeout) {}

  void sum(std::span<float> gradients) override {
    all_reduce(executor_, gradients, {.deadline = Deadline::in(timeout_), .algorithm = algorithm_});
  }

  void add_rest(std::span<float>) const override {}

 private:
  Executor executor_;
  std::string algorithm_;
  Duration timeout_;
};

}  // namespace

std::unique_ptr<GradientExchange> make_gradient_exchange(const ExchangeOptions& options) {
  using Sum = compression::CodecRow::Sum;
  switch (compression::codec_row(options.compression.kind).sum) {
    case Sum::of_floats:
      return std::make_unique<WholeExchange>(options);
    case Sum::of_factors:
      return make_lowrank_exchange(options);
    case Sum::of_all_messages:
      return make_gather_exchange(options);
    case Sum::by_owners:
      break;
  }
  return make_segment_exchange(options);
}

std::string exchange_words(const CompressionOptions& compression) {
  const std::string& kind = compression.kind;
  if (kind == "none") return "whole floats";
  if (kind == "lowrank") return fmt::format("low-rank factors (rank {}), summed", compression.rank);
  if (kind == "topk") {
    return fmt::format("the largest {:g} % (topk), everyone to everyone", compression.ratio * 100);
  }
  if (kind == "sign") return "signs, everyone to everyone";
  if (compression::codec_row(kind).sum == compression::CodecRow::Sum::of_all_messages) {
    return fmt::format("{}, everyone to everyone", kind);
  }
  return fmt::format("{}, to the owner of each segment and back", kind);
}

std::uint64_t exchange_seed(const ExchangeOptions& options, int purpose) {
  const auto rank = static_cast<std::uint64_t>(options.transport.rank());
  return Random(options.seed, (rank << 32) + static_cast<std::uint64_t>(purpose)).next();
}

}  // namespace cohort::collective
