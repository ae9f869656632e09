#include "collective/compressed/whole_exchange.h"

#include "collective/collectives.h"

namespace cohort {
namespace {

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

std::unique_ptr<GradientExchange> make_whole_exchange(const ExchangeOptions& options) {
  return std::make_unique<WholeExchange>(options);
}

}  // namespace cohort
