#pragma once

#include <cohort/job.h>
#include <cohort/model.h>

#include "base/phases.h"
#include "data/batch_loader.h"
#include "data/load_data.h"
#include "kinds/strategy_table.h"
#include "strategy/strategy.h"
#include "tensor/step_context.h"
#include "train/loop/stepper.h"
#include "train/loop/validation.h"

namespace cohort::training {

/// Steps of workers that each have the whole model and take their rows of every batch (data
/// parallel): a batch, or several where gradients accumulate, goes forward and back through it.
///
/// A worker's loss is the mean over its rows times its share of the global batch, so that losses,
/// and gradients, add up over the workers to those of the whole batch. A worker without rows (there
/// are fewer rows than workers) has a loss of zero; its layers run all the same where they are
/// Cohort's, because they may talk to those of the other workers.
class ReplicaStepper : public Stepper {
 public:
  struct Options {
    const Job& job;
    const data::LoadedData& data;
    PhaseClock& phases;
    int rank = 0;
    int world = 1;
    std::int64_t first_step = 0;
  };

  /// All that is given outlives it. The model is in training mode from now on.
  ReplicaStepper(const Options& options, Model& model, strategy::Strategy& strategy);

  StepWork compute(const StepOrder& order) override;
  ValidationSums evaluate(ValidationPart part) override;

 private:
  data::BatchOptions loader_options() const;
  data::BatchLoader::Preparation preparation() const;
  tensor::StepContext context_of(std::int64_t step, const data::LoadedBatch& loaded);
  torch::Tensor weighted_loss(const data::LoadedBatch& loaded);
  torch::Tensor loss_of_no_rows(const data::LoadedBatch& loaded);

  Options options_;
  kinds::StrategyTraits traits_;
  Model& model_;
  strategy::Strategy& strategy_;
  LossFunction loss_;
  data::BatchLoader loader_;
  data::EvaluationBatches share_;
};

}  // namespace cohort::training
