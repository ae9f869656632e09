#pragma once

#include <cohort/job.h>
#include <torch/torch.h>

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/preprocessing/inputs.h"

namespace cohort::data {

/// What the unknown class is called, where there is one.
inline constexpr const char* kUnknownName = "<unknown>";

/// Whether a class or character that training never saw stands for the unknown one (and is no
/// error): `data.unknown = "accept"`.
bool accepts_unknown(const DataOptions& options);

/// Throws Error(invalid) unless `options.task` is one that labels can have.
void check_task(const DataOptions& options);

/// What files say of the samples' targets: the text, and where it stands, for error messages.
struct Labels {
  std::string file;
  std::vector<std::string> texts;
  std::vector<std::int64_t> lines;

  void add(std::string text, std::int64_t line);
};

/// How labels become targets: class ids, or values to predict. Classes are counted in the order of
/// their numbers or, where a label is not a number, of their names; the unknown one, if there is
/// one, comes last. A value: what the loader learned, and all that scoring needs.
///
///   values     one float to predict per output; labels are numbers
///   counted    classes that are their own ids; nothing is kept of each
///   named      classes by name; `numeric` where all names are numbers: then "1" and "1.0" are one
///
/// Const functions may be called on any thread.
class Targets {
 public:
  /// Learns the classes of `labels`: of all of them or, where there is an unknown class, only of
  /// the rows `train`. `options.task` says whether there are any: "classes" (also where the task is
  /// left at its default) or "values". Throws Error(invalid) for another task, fewer than two
  /// classes, or numbers that cannot be classes.
  Targets(const DataOptions& options, const Labels& labels, const std::vector<std::int64_t>& train);

  /// Classes that are their own numbers: 0, 1, … There may be millions; nothing is kept of each.
  static Targets counted(std::int64_t classes);
  /// Classes by name, in their order. Throws Error(invalid) where one is there twice or, if they
  /// are `numeric`, is no number.
  static Targets named(std::vector<std::string> names, bool numeric, bool unknown);
  /// No classes: so many floats to predict.
  static Targets values(std::int64_t outputs);

  bool classes() const { return classes_; }
  bool counted() const { return counted_; }
  bool numeric() const { return numeric_; }
  bool unknown() const { return unknown_; }
  /// Classes, or values, to predict.
  std::int64_t outputs() const { return outputs_; }
  /// By id; empty where values are predicted.
  std::vector<std::string> names() const;

  /// The class of a label. Throws Error(invalid), with its place, for one that training never saw,
  /// unless there is an unknown class.
  std::int64_t id_of(const std::string& text, const formats::RowPlace& place) const;
  /// The number a label is written as. Throws Error(invalid), with its place, where it is none.
  float value_of(const std::string& text, const formats::RowPlace& place) const;

  /// An empty tensor for the targets of so many rows: int64 ids of shape {n}, or floats {n, 1}.
  torch::Tensor room_for(std::int64_t rows) const;
  /// The target of one label, into row `row` of such a tensor.
  void convert(const std::string& text, const formats::RowPlace& place, torch::Tensor& into,
               std::int64_t row) const;
  /// The targets of all labels.
  torch::Tensor convert(const Labels& labels) const;

 private:
  Targets() = default;
  /// Numbers the classes. Throws as named() does.
  void set_names(std::vector<std::string> names);
  /// The class of a label; nothing where training never saw it.
  std::optional<std::int64_t> known_id(const std::string& text) const;

  bool classes_ = true;
  bool counted_ = false;
  bool numeric_ = false;
  bool unknown_ = false;  ///< There is an unknown class, the last one.
  std::int64_t outputs_ = 0;
  std::vector<std::string> names_;                   ///< By id; only of named classes.
  std::map<double, std::int64_t> ids_by_number_;     ///< Where numeric_.
  std::map<std::string, std::int64_t> ids_by_name_;  ///< Otherwise.
};

}  // namespace cohort::data
