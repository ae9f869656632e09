#pragma once

#include <cohort/job.h>
#include <cohort/model.h>
#include <torch/torch.h>

#include <cstdint>
#include <functional>

#include "data/batch_loader.h"

// What a model is judged by: the loss of a batch, a pass over the validation set, and when such
// passes are made.

namespace cohort::cluster {
struct View;
}  // namespace cohort::cluster
namespace cohort::strategy {
class Strategy;
}  // namespace cohort::strategy

namespace cohort::training {

class Pace;
class Stepper;
struct WorkerLife;

/// (output, target) → the mean loss of a batch, a tensor of one number that autograd can go back
/// from.
using LossFunction = std::function<torch::Tensor(const torch::Tensor&, const torch::Tensor&)>;

/// The job's loss, or the program's own. For sequences the output is [batch, position, class] and
/// every position counts alike. Throws Error(invalid) where there is none of that name.
LossFunction make_loss(const TrainOptions& options);

/// How many predictions are right, and how many there are, where targets are class ids.
struct Hits {
  double right = 0;
  double all = 0;
};
Hits count_hits(const torch::Tensor& output, const torch::Tensor& target);

/// Samples that are computed at once. How a product is cut can change its last bits, so whoever
/// wants to find the same accuracy again takes as many.
inline constexpr std::int64_t kValidationChunk = 256;

/// How much of the validation set a worker looks at: its share of it, or everything.
enum class ValidationPart { own_share, whole_set };

/// What was seen of a validation set. Those of several workers are added up, field by field.
struct ValidationSums {
  double loss = 0;         ///< Of all samples.
  double samples = 0;      ///< How many.
  double right = 0;        ///< Predictions that were, where targets are classes,
  double predictions = 0;  ///< of so many.
};

struct ValidationResult {
  double loss = 0;      ///< The mean over the samples.
  double accuracy = 0;  ///< 0 where targets are not classes.
};

/// A pass over all of the batches with the model as it is, without gradients. The model is in
/// training mode again when it returns.
ValidationSums evaluate(Model& model, data::EvaluationBatches& batches, const LossFunction& loss);

ValidationResult result_of(const ValidationSums& sums);

/// When the validation set is looked at: once after every epoch, whatever becomes of the groups of
/// workers meanwhile, and at the end, as the job says (train.validate). What was seen goes to the
/// worker's result and to the chief's log.
///
/// In lockstep all workers look at their shares together and add up what they have seen; otherwise
/// the chief looks at everything alone between two of its steps while the others train on (see
/// Pace::validates). At the end all take their shares.
///
/// An epoch counts as validated only once its pass is through, and is asked for before a step, not
/// after one. So a pass that broke with its group is made again by the next group, and one that was
/// made is not made twice: WorkerLife::validated_epochs goes from group to group.
class EpochValidation {
 public:
  /// What it is made of; all of it outlives it.
  struct Context {
    WorkerLife& life;
    Stepper& stepper;
    strategy::Strategy& strategy;
    Pace& pace;
  };

  explicit EpochValidation(const Context& context) : context_(context) {}

  /// At the start of a group, after `steps` steps: all agree on what is validated already.
  void begin(const cluster::View& view, std::int64_t steps);

  /// Whether this worker will validate when so many steps are done.
  bool is_due(std::int64_t steps) const;

  /// Validates the epoch that is finished after `steps` steps, where there is one. Called before
  /// every step.
  void before_step(std::int64_t steps);

  /// After the last step, all together, unless the job wants none.
  void at_end(std::int64_t steps);

 private:
  std::int64_t epochs_at(std::int64_t steps) const;
  bool is_wanted(std::int64_t steps) const;
  void run(std::int64_t steps, ValidationPart part);
  void tell(std::int64_t steps, const ValidationResult& result);

  Context context_;
};

}  // namespace cohort::training
