#include "train/loop/replica_stepper.h"

#include "tensor/step_context.h"

namespace cohort::training {

ReplicaStepper::ReplicaStepper(const Options& options, Model& model, strategy::Strategy& strategy)
    : options_(options),
      traits_(kinds::way_of(options.job.strategy).traits),
      model_(model),
      strategy_(strategy),
      loss_(make_loss(options.job.train)),
      loader_(options.data.train, loader_options(), preparation()),
      share_(options.data.validation, kValidationChunk, options.rank, options.world) {
  model_.train(true);
}

// Handed out are as many parts of a batch as there were workers at first, to however many there
// are now: which part is to be read, the order says.
data::BatchOptions ReplicaStepper::loader_options() const {
  const Job& job = options_.job;
  const bool handed_out = traits_.hands_out_work;
  return {.seed = job.seed,
          .batch = job.train.batch,
          .rank = handed_out ? 0 : options_.rank,
          .world = handed_out ? static_cast<int>(job.cluster.workers) : options_.world,
          .accumulate = job.train.accumulate,
          .start = data::cursor_after(options_.first_step, options_.data.train->size(),
                                      job.train.batch)};
}

// Whoever is handed its work does not know it before it asks.
data::BatchLoader::Preparation ReplicaStepper::preparation() const {
  return traits_.hands_out_work ? data::BatchLoader::Preparation::in_next
                                : data::BatchLoader::Preparation::automatic;
}

StepWork ReplicaStepper::compute(const StepOrder& order) {
  if (traits_.hands_out_work) loader_.seek(order.piece);
  strategy_.space().begin_step();
  StepWork work;
  for (bool last = false; !last;) {
    PhaseSpan span(options_.phases, Phase::data);
    const data::LoadedBatch loaded = loader_.next();
    last = loaded.last_of_step;
    work.rows += loaded.batch.input.size(0);
    work.global_rows = loaded.global_rows;
    span.next(Phase::forward);
    // What layers of this thread may know, until the end of this backward pass.
    const tensor::StepScope told(context_of(order.piece.step, loaded));
    const torch::Tensor loss = weighted_loss(loaded);
    if (loss.defined()) work.loss += loss.item<double>();
    if (last) {
      strategy_.begin_last_backward({.loss = work.loss, .stop = order.stop, .save = order.save});
    }
    span.next(Phase::backward);
    if (loss.defined()) loss.backward();
  }
  return work;
}

// The function in it is this stepper's and leads to the strategy; StepScope takes it back before
// either can end. Without it (one worker, or workers that do not go in step) layers take their own
// numbers for all there are.
tensor::StepContext ReplicaStepper::context_of(std::int64_t step, const data::LoadedBatch& loaded) {
  tensor::StepContext context;
  context.seed = options_.job.seed;
  context.step = step;
  context.first_row = loaded.first_row;
  context.gradients_travel = strategy_.space().gradients_travel();
  if (options_.world > 1 && traits_.lockstep) {
    context.sum_over_workers = [this](std::span<double> values) {
      strategy_.sum_over_workers(values);
    };
  }
  return context;
}

// The share this worker's rows have in the mean loss of the global batch. Undefined where there
// are no rows and nothing else to do.
torch::Tensor ReplicaStepper::weighted_loss(const data::LoadedBatch& loaded) {
  const std::int64_t rows = loaded.batch.input.size(0);
  if (rows == 0) return loss_of_no_rows(loaded);
  const double weight = static_cast<double>(rows) / static_cast<double>(loaded.global_rows);
  const torch::Tensor loss = loss_(model_.forward(loaded.batch.input), loaded.batch.target);
  return weight == 1 ? loss : loss * weight;
}

// Cohort's own layers may talk to the other workers in forward and backward, so all of them have
// to run also without rows. A program's own module need not be able to.
torch::Tensor ReplicaStepper::loss_of_no_rows(const data::LoadedBatch& loaded) {
  const ModelOptions& model = options_.job.model;
  if (model.make || !model.torchscript.empty()) return {};
  return model_.forward(loaded.batch.input).sum() * 0;
}

ValidationSums ReplicaStepper::evaluate(ValidationPart part) {
  if (part == ValidationPart::own_share) return training::evaluate(model_, share_, loss_);
  data::EvaluationBatches all(options_.data.validation, kValidationChunk);
  return training::evaluate(model_, all, loss_);
}

}  // namespace cohort::training
