#include "optimizer/optimizer.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/fail.h"
#include "base/names.h"
#include "base/vectorize.h"
#include "optimizer/optimizer_kernels.h"

namespace cohort::optimizer {
namespace {

// As torch has them where a job says nothing.
constexpr double kAdamEpsilon = 1e-8;
constexpr double kAdagradEpsilon = 1e-10;

double epsilon_or(const OptimizerOptions& options, double standard) {
  return options.epsilon == 0 ? standard : options.epsilon;
}

SgdScalars sgd_scalars(double lr, const UpdateScalars& scalars, double weight_decay) {
  return {.lr = static_cast<float>(lr),
          .gradient_scale = static_cast<float>(scalars.gradient_scale),
          .weight_decay = static_cast<float>(weight_decay)};
}

/// Checks what all optimizers ask of the spans they are given, so that no kernel runs over an end.
void check_sizes(const Optimizer& optimizer, std::span<const float> parameters,
                 std::span<const float> gradients, std::span<const std::span<float>> slots) {
  bool fit = gradients.size() == parameters.size() && slots.size() == optimizer.slots().size();
  for (const std::span<float>& slot : slots) fit = fit && slot.size() == parameters.size();
  if (!fit) {
    fail(ErrorCode::invalid,
         "an update of {} parameters got {} gradients and {} slots; it needs as many gradients and "
         "{} slots of the same size",
         parameters.size(), gradients.size(), slots.size(), optimizer.slots().size());
  }
}

/// p -= lr * share * (g + decay * p).
class Sgd final : public Optimizer {
 public:
  explicit Sgd(const OptimizerOptions& options) : options_(options) {}

  std::vector<std::string> slots() const override { return {}; }

  void update(std::span<float> parameters, std::span<const float> gradients,
              std::span<const std::span<float>> slots,
              const UpdateScalars& scalars) const override {
    check_sizes(*this, parameters, gradients, slots);
    sgd_kernel(parameters.data(), gradients.data(), parameters.size(),
               sgd_scalars(scalars.lr * scalars.share, scalars, options_.weight_decay));
  }

 private:
  const OptimizerOptions options_;
};

// The rules. Each turns the options and a step's scalars into the few floats that its kernel works
// with (optimizer_kernels.cc), in double and rounded once, so that an update of any part of the
// parameters has the bits of an update of all of them. Where an update is a share s of a step, what
// a rule does to the gradient and what it does to the step size must give, over updates whose
// shares add up to 1, about what one whole step gives; each rule says how it does that.

/// SGD with a velocity, plain or Nesterov's.
class Momentum final : public Optimizer {
 public:
  explicit Momentum(const OptimizerOptions& options) : options_(options) {}

  std::vector<std::string> slots() const override { return {"momentum"}; }

  void update(std::span<float> parameters, std::span<const float> gradients,
              std::span<const std::span<float>> slots,
              const UpdateScalars& scalars) const override {
    check_sizes(*this, parameters, gradients, slots);
    const auto momentum = static_cast<float>(std::pow(options_.momentum, scalars.share));
    const double entry = entry_of(scalars.share);
    UpdateScalars entering = scalars;
    entering.gradient_scale *= entry;
    momentum_kernel(
        parameters.data(), gradients.data(), slots[0].data(), parameters.size(),
        {.sgd = sgd_scalars(scalars.lr * scalars.share, entering, options_.weight_decay * entry),
         .momentum = momentum,
         .buffer_share = options_.nesterov ? momentum : 1,
         .gradient_share = options_.nesterov ? 1.0f : 0.0f});
  }

 private:
  /// In a share s of a step the velocity loses what leaves momentum^s of it, and gains so much of
  /// the gradient that the same gradient again and again leads to gradient/(1-momentum), as it
  /// does in whole steps. It then moves the parameters for the time s.
  double entry_of(double share) const {
    if (share == 1) return 1;
    return (1 - std::pow(options_.momentum, share)) / (1 - options_.momentum);
  }

  const OptimizerOptions options_;
};

/// Adam, and AdamW where the weight decay is decoupled from the gradient.
class Adam final : public Optimizer {
 public:
  Adam(const OptimizerOptions& options, bool decoupled)
      : options_(options), decoupled_(decoupled) {}

  std::vector<std::string> slots() const override { return {"m", "v"}; }

  void update(std::span<float> parameters, std::span<const float> gradients,
              std::span<const std::span<float>> slots,
              const UpdateScalars& scalars) const override {
    check_sizes(*this, parameters, gradients, slots);
    adam_kernel(parameters.data(), gradients.data(), {.m = slots[0].data(), .v = slots[1].data()},
                parameters.size(), scalars_of(scalars));
  }

 private:
  /// Step size and root have the correction of the bias in them, which the zeroes that the moments
  /// begin with bring: 1 - beta^step, by the number of updates.
  AdamScalars scalars_of(const UpdateScalars& scalars) const {
    const auto step = static_cast<double>(scalars.step);
    const double first_correction = 1 - std::pow(options_.beta1, step);
    const double second_correction = 1 - std::pow(options_.beta2, step);
    const double decay = options_.weight_decay;
    const double lr = scalars.lr * scalars.share;
    return {.gradient_scale = static_cast<float>(scalars.gradient_scale),
            .weight_decay = static_cast<float>(decoupled_ ? 0 : decay),
            .shrink = static_cast<float>(decoupled_ ? 1 - lr * decay : 1),
            .beta1 = static_cast<float>(options_.beta1),
            .one_minus_beta1 = static_cast<float>(1 - options_.beta1),
            .beta2 = static_cast<float>(options_.beta2),
            .one_minus_beta2 = static_cast<float>(1 - options_.beta2),
            .step_size = static_cast<float>(lr / first_correction),
            .root_scale = static_cast<float>(1 / std::sqrt(second_correction)),
            .epsilon = static_cast<float>(epsilon_or(options_, kAdamEpsilon))};
  }

  const OptimizerOptions options_;
  const bool decoupled_;
};

/// Steps by the root of the sum of all squares so far.
class Adagrad final : public Optimizer {
 public:
  explicit Adagrad(const OptimizerOptions& options) : options_(options) {}

  std::vector<std::string> slots() const override { return {"sum"}; }

  void update(std::span<float> parameters, std::span<const float> gradients,
              std::span<const std::span<float>> slots,
              const UpdateScalars& scalars) const override {
    check_sizes(*this, parameters, gradients, slots);
    // The sum of squares grows by the share of a square: the root of the share goes into what is
    // squared, and once more into the step.
    const double root = std::sqrt(scalars.share);
    UpdateScalars entering = scalars;
    entering.gradient_scale *= root;
    const auto epsilon = static_cast<float>(epsilon_or(options_, kAdagradEpsilon));
    adagrad_kernel(parameters.data(), gradients.data(), slots[0].data(), parameters.size(),
                   {.sgd = sgd_scalars(scalars.lr * root, entering, options_.weight_decay * root),
                    .epsilon = epsilon});
  }

 private:
  const OptimizerOptions options_;
};

void check_not_negative(std::string_view name, double value) {
  if (!std::isfinite(value) || value < 0) {
    fail(ErrorCode::invalid, "optimizer {} is {}; it must be a finite number of at least 0", name,
         value);
  }
}

void check_beta(std::string_view name, double value) {
  if (!(value >= 0 && value < 1)) {
    fail(ErrorCode::invalid, "optimizer {} is {}; it must be at least 0 and below 1", name, value);
  }
}

/// What make_optimizer() demands of every kind alike: a number that a kind does not read must make
/// sense, too.
void check_numbers(const OptimizerOptions& options) {
  check_not_negative("lr", options.lr);
  check_not_negative("momentum", options.momentum);
  check_not_negative("weight_decay", options.weight_decay);
  check_not_negative("epsilon", options.epsilon);
  check_not_negative("lr_decay", options.lr_decay);
  check_beta("beta1", options.beta1);
  check_beta("beta2", options.beta2);
  if (options.nesterov && options.momentum == 0) {
    fail(ErrorCode::invalid, "optimizer nesterov needs a momentum above 0");
  }
}

constexpr std::size_t kSquareLanes = 32;

// Independent lanes, because the compiler may not reorder a sum of floats by itself.
COHORT_VECTORIZE void add_squares(double* lanes, const float* values, std::size_t count) {
  for (std::size_t i = 0; i + kSquareLanes <= count; i += kSquareLanes) {
    for (std::size_t lane = 0; lane < kSquareLanes; ++lane) {
      const double value = values[i + lane];
      lanes[lane] += value * value;
    }
  }
}

template <class Rule>
std::unique_ptr<Optimizer> make(const OptimizerOptions& options) {
  return std::make_unique<Rule>(options);
}

std::unique_ptr<Optimizer> make_sgd(const OptimizerOptions& options) {
  return options.momentum == 0 ? make<Sgd>(options) : make<Momentum>(options);
}

template <bool decoupled>
std::unique_ptr<Optimizer> make_adam(const OptimizerOptions& options) {
  return std::make_unique<Adam>(options, decoupled);
}

/// An optimizer is a row here: all that others know of it is read from these.
struct RowAndRule : OptimizerRow {
  std::unique_ptr<Optimizer> (*make)(const OptimizerOptions& options);
};

const std::vector<RowAndRule>& optimizer_rows() {
  static const std::vector<RowAndRule> all = {
      {{"sgd", {"momentum", "nesterov", "weight_decay"}, "the gradient, or a velocity made of it"},
       make_sgd},
      {{"adam",
        {"weight_decay", "beta1", "beta2", "epsilon"},
        "the mean gradient by the root of the mean square"},
       make_adam<false>},
      {{"adamw",
        {"weight_decay", "beta1", "beta2", "epsilon"},
        "the same, with weight decay apart from the gradient"},
       make_adam<true>},
      {{"adagrad",
        {"weight_decay", "epsilon", "lr_decay"},
        "the gradient by the root of the sum of its squares"},
       make<Adagrad>},
  };
  return all;
}

}  // namespace

// In double and in lanes whose number is fixed: the sum depends on the values and their number, not
// on the machine's vectors.
double sum_of_squares(std::span<const float> values) {
  std::array<double, kSquareLanes> lanes{};
  add_squares(lanes.data(), values.data(), values.size());
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  for (std::size_t i = values.size() / kSquareLanes * kSquareLanes; i < values.size(); ++i) {
    sum += static_cast<double>(values[i]) * values[i];
  }
  return sum;
}

double clip_scale(double norm, double clip_norm) {
  if (clip_norm <= 0) return 1;
  return std::min(1.0, clip_norm / (norm + 1e-6));
}

std::vector<OptimizerRow> optimizer_table() {
  return {optimizer_rows().begin(), optimizer_rows().end()};
}

// For whoever gets gradients that have been through a velocity already. Weight decay went through
// it as well, and was summed up 1/(1 - momentum) times by it; applied directly it must be as large.
OptimizerOptions without_momentum(OptimizerOptions options) {
  options.weight_decay /= 1 - options.momentum;
  options.momentum = 0;
  options.nesterov = false;
  return options;
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options) {
  const RowAndRule& row = row_named("optimizer kind", options.kind, optimizer_rows());
  check_numbers(options);
  return row.make(options);
}

}  // namespace cohort::optimizer
