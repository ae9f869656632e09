#pragma once

#include <cohort/job.h>
#include <torch/torch.h>

#include <map>
#include <string>
#include <vector>

namespace cohort {

/// What files say of the samples' targets: the text, and where it stands, for error messages.
struct Labels {
  std::string file;
  std::vector<std::string> texts;
  std::vector<std::int64_t> lines;

  void add(std::string text, std::int64_t line);
};

/// How labels become targets. Classes are counted in the order of their numbers or, where a label
/// is not a number, of their names.
class Targets {
 public:
  /// Learns the classes of `train`. `options.task` says whether there are any: "classes" (also
  /// where the task is left at its default) or "values". Throws Error(invalid) for another task,
  /// fewer than two classes, or numbers that cannot be classes.
  Targets(const DataOptions& options, const Labels& train);

  bool classes() const { return classes_; }

  /// Classes, or values, to predict.
  std::int64_t outputs() const;

  /// int64 ids of shape {n}, or floats of shape {n, 1}. Throws Error(invalid), with file and line,
  /// for a label that is not a number, or a class that is not among those learned.
  torch::Tensor convert(const Labels& labels) const;

 private:
  std::int64_t id_of(const Labels& labels, std::size_t at) const;

  bool classes_;
  bool numeric_ = false;
  std::map<double, std::int64_t> numbers_;
  std::map<std::string, std::int64_t> names_;
};

}  // namespace cohort
