#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "chaos/chaos_options.h"

namespace cohort::chaos {

/// A job whose model tells how far it was moved. All inputs are 0, so the gradient of its weights
/// is 0 too, and nothing but weight decay changes them: n steps multiply them by (1 - lr *
/// decay)^n, whoever made the steps and in how many pieces. A step that was lost, or applied twice,
/// or counted for more than it is, is then seen in the weights, which no learning hides.
///
/// How far a model was moved is found backwards: weights w after n steps are factor^n times the
/// first ones, so n is log(w / first) / log(factor). The first weights follow from the seed of the
/// job, but nobody writes them down, so the job is trained for one step to know them.
class MovementJob {
 public:
  /// Writes the job and its data (movement.toml, movement.csv) into the session's folder.
  explicit MovementJob(const ChaosOptions& options);

  /// The session with this job instead of the user's, whose settings of the cluster stay.
  const ChaosOptions& options() const { return options_; }

  /// How many steps' worth of movement a model of this job has seen. Trains the job for one step
  /// the first time, to know where it begins. Throws Error where that fails, or where the file is
  /// no model of this job.
  double steps_moved(const std::filesystem::path& model);

  static constexpr int kSteps = 4000;

 private:
  const std::vector<float>& first_weights();

  ChaosOptions options_;
  // After one step; nothing until they were asked for.
  std::optional<std::vector<float>> first_weights_;
};

/// By how many steps weights `after` have moved from `before`, where a step multiplies by `factor`.
/// Throws Error where they are not of the same size. Not finite where they are not a multiple.
double steps_between(const std::vector<float>& before, const std::vector<float>& after,
                     double factor);

}  // namespace cohort::chaos
