#include "train/loop/validation.h"

#include <array>

#include "base/names.h"
#include "cluster/membership.h"
#include "data/sampler.h"
#include "strategy/strategy.h"
#include "train/loop/pace.h"
#include "train/loop/step_rate.h"
#include "train/loop/stepper.h"
#include "train/worker_life.h"

namespace cohort::training {
namespace {

torch::Tensor cross_entropy(const torch::Tensor& output, const torch::Tensor& target) {
  return torch::nn::functional::cross_entropy(output.flatten(0, -2), target.flatten());
}

torch::Tensor mean_squared_error(const torch::Tensor& output, const torch::Tensor& target) {
  return torch::mse_loss(output, target.view_as(output));
}

}  // namespace

LossFunction make_loss(const TrainOptions& options) {
  if (options.own_loss) return options.own_loss;
  check_known("train.loss", options.loss, {"cross-entropy", "mean-squared-error"});
  return options.loss == "cross-entropy" ? cross_entropy : mean_squared_error;
}

Hits count_hits(const torch::Tensor& output, const torch::Tensor& target) {
  const auto right = output.argmax(-1).eq(target).sum().item<std::int64_t>();
  return {static_cast<double>(right), static_cast<double>(target.numel())};
}

// Sums and not means: shares of the set add up over the workers to those of the whole set, however
// it was cut. A loss is the mean over the rows of its batch, so it counts by these; predictions may
// be more than rows, where a row is a sequence. In training mode again afterwards: batch norm and
// dropout must not learn from, or disturb, what is only looked at.
ValidationSums evaluate(Model& model, data::EvaluationBatches& batches, const LossFunction& loss) {
  torch::NoGradGuard no_grad;
  model.train(false);
  batches.restart();
  ValidationSums sums;
  while (const auto batch = batches.next()) {
    const auto rows = static_cast<double>(batch->input.size(0));
    const torch::Tensor output = model.forward(batch->input);
    sums.loss += loss(output, batch->target).item<double>() * rows;
    sums.samples += rows;
    if (batch->target.scalar_type() == torch::kInt64) {
      const Hits hits = count_hits(output, batch->target);
      sums.right += hits.right;
      sums.predictions += hits.all;
    }
  }
  model.train(true);
  return sums;
}

ValidationResult result_of(const ValidationSums& sums) {
  const auto ratio = [](double part, double all) { return all > 0 ? part / all : 0; };
  return {ratio(sums.loss, sums.samples), ratio(sums.right, sums.predictions)};
}

// A group that follows another one may begin at the very end of an epoch: some workers have looked
// at the validation set by then and others not, or have never heard of it, being new. All of them
// agree on whether that epoch is done with, since validating is something that all do together.
void EpochValidation::begin(const cluster::View& view, std::int64_t steps) {
  WorkerLife& life = context_.life;
  const std::int64_t epochs = epochs_at(steps);
  const bool done =
      view.generation == 1 || context_.pace.agree_on_validated(life.validated_epochs >= epochs);
  life.validated_epochs = done ? epochs : epochs - 1;
}

std::int64_t EpochValidation::epochs_at(std::int64_t steps) const {
  const WorkerRun& run = context_.life.run;
  return steps / data::steps_per_epoch(run.data.train->size(), run.job.train.batch);
}

/// The last epoch is left to at_end().
bool EpochValidation::is_wanted(std::int64_t steps) const {
  return epochs_at(steps) > context_.life.validated_epochs &&
         context_.life.run.job.train.validate == "epoch" && steps < context_.life.total_steps;
}

bool EpochValidation::is_due(std::int64_t steps) const {
  return is_wanted(steps) && context_.pace.validates();
}

// Who asked to stop does not want to wait for a validation.
void EpochValidation::before_step(std::int64_t steps) {
  const std::int64_t epochs = epochs_at(steps);
  if (epochs <= context_.life.validated_epochs || context_.pace.stopped()) return;
  const std::optional<ValidationPart> part = context_.pace.validates();
  if (part && is_wanted(steps)) run(steps, *part);
  context_.life.validated_epochs = epochs;
}

void EpochValidation::at_end(std::int64_t steps) {
  if (context_.life.run.job.train.validate != "never") run(steps, ValidationPart::own_share);
}

// The time of it counts as no step's: the rate of a run is that of training. The launcher is told,
// so that it does not take a worker that validates for one that is stuck.
void EpochValidation::run(std::int64_t steps, ValidationPart part) {
  const StepRate::Pause pause(context_.life.rate);
  context_.life.card.state.store(launch::TaskState::validating);
  const ValidationSums own = context_.stepper.evaluate(part);
  std::array<double, 4> sums = {own.loss, own.samples, own.right, own.predictions};
  if (part == ValidationPart::own_share) context_.strategy.sum_over_workers(sums);
  context_.life.card.state.store(launch::TaskState::training);
  tell(steps, result_of({sums[0], sums[1], sums[2], sums[3]}));
}

void EpochValidation::tell(std::int64_t steps, const ValidationResult& result) {
  WorkerLife& life = context_.life;
  const bool classes = life.run.data.spec.classes;
  launch::WorkerResult& told = life.card.result;
  told.has_validation = true;
  told.has_accuracy = classes;
  told.validation_loss = result.loss;
  told.accuracy = result.accuracy;
  if (!life.log) return;
  life.log->validation({.step = steps,
                        .epoch = life.epochs_after(steps),
                        .loss = result.loss,
                        .accuracy = result.accuracy,
                        .has_accuracy = classes});
}

}  // namespace cohort::training
