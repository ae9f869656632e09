#include "data/preprocessing/targets.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "base/fail.h"
#include "base/names.h"
#include "data/datasets.h"

namespace cohort::data {
namespace {

/// DataOptions::task has a default that is a task of generated data; left alone it means classes.
bool wants_classes(const DataOptions& options) {
  const bool left_at_default = options.task == DataOptions().task;
  if (left_at_default) return true;
  check_known("task of " + options.kind + " data", options.task, {"classes", "values"});
  return options.task == "classes";
}

/// A class that is a number must be a whole one: others are values, which the message says.
double class_number(const Labels& labels, std::size_t at) {
  const double number = *formats::parse_number(labels.texts[at]);
  if (number != std::floor(number)) {
    fail(ErrorCode::invalid,
         "{} line {}: the target {} is not a class; set task = \"values\" to predict numbers",
         labels.file, labels.lines[at], excerpt(labels.texts[at]));
  }
  return number;
}

/// The names of classes that are numbers, in their order.
std::vector<std::string> numbers_in(const Labels& labels, const std::vector<std::int64_t>& rows) {
  std::set<double> numbers;
  for (const std::int64_t row : rows) {
    numbers.insert(class_number(labels, static_cast<std::size_t>(row)));
  }
  std::vector<std::string> names;
  for (const double number : numbers) names.push_back(fmt::format("{}", number));
  return names;
}

/// The names of classes by their letters, in that order.
std::vector<std::string> names_in(const Labels& labels, const std::vector<std::int64_t>& rows) {
  std::set<std::string> names;
  for (const std::int64_t row : rows) names.insert(labels.texts[static_cast<std::size_t>(row)]);
  return {names.begin(), names.end()};
}

}  // namespace

bool accepts_unknown(const DataOptions& options) {
  check_known("data.unknown", options.unknown, {"error", "accept"});
  return options.unknown == "accept";
}

void check_task(const DataOptions& options) {
  wants_classes(options);
}

void Labels::add(std::string text, std::int64_t line) {
  texts.push_back(std::move(text));
  lines.push_back(line);
}

Targets::Targets(const DataOptions& options, const Labels& labels,
                 const std::vector<std::int64_t>& train)
    : classes_(wants_classes(options)), outputs_(1) {
  if (!classes_) return;
  unknown_ = accepts_unknown(options);
  const std::vector<std::int64_t> learned =
      unknown_ ? train : all_rows(static_cast<std::int64_t>(labels.texts.size()));
  numeric_ = std::ranges::all_of(learned, [&](std::int64_t row) {
    return formats::parse_number(labels.texts[static_cast<std::size_t>(row)]).has_value();
  });
  std::vector<std::string> names =
      numeric_ ? numbers_in(labels, learned) : names_in(labels, learned);
  // Samples of that very name are of the unknown class too, which has its place at the end.
  if (unknown_) std::erase(names, kUnknownName);
  if (names.size() < 2) {
    fail(ErrorCode::invalid, "{}: all samples are of the class \"{}\"; at least 2 are needed",
         labels.file, names.empty() ? "" : excerpt(names[0]));
  }
  set_names(std::move(names));
}

// The classes that training knows are numbered as they come; the unknown one is added after them
// and has the last id.
void Targets::set_names(std::vector<std::string> names) {
  names_ = std::move(names);
  for (std::size_t id = 0; id < names_.size(); ++id) {
    const auto number = numeric_ ? formats::parse_number(names_[id]) : std::nullopt;
    if (numeric_ && !number) {
      fail(ErrorCode::invalid, "the class \"{}\" is not a number, as the others are",
           excerpt(names_[id]));
    }
    const bool is_new =
        numeric_ ? ids_by_number_.emplace(*number, static_cast<std::int64_t>(id)).second
                 : ids_by_name_.emplace(names_[id], static_cast<std::int64_t>(id)).second;
    if (!is_new) fail(ErrorCode::invalid, "the class \"{}\" is there twice", excerpt(names_[id]));
  }
  if (unknown_) names_.emplace_back(kUnknownName);
  outputs_ = static_cast<std::int64_t>(names_.size());
}

Targets Targets::counted(std::int64_t classes) {
  Targets targets;
  targets.counted_ = true;
  targets.outputs_ = classes;
  return targets;
}

Targets Targets::named(std::vector<std::string> names, bool numeric, bool unknown) {
  Targets targets;
  targets.numeric_ = numeric;
  targets.unknown_ = unknown;
  targets.set_names(std::move(names));
  return targets;
}

Targets Targets::values(std::int64_t outputs) {
  Targets targets;
  targets.classes_ = false;
  targets.outputs_ = outputs;
  return targets;
}

std::vector<std::string> Targets::names() const {
  if (!counted_) return names_;
  std::vector<std::string> names;
  for (std::int64_t id = 0; id < outputs_; ++id) names.push_back(std::to_string(id));
  return names;
}

// Numeric classes are looked up as numbers, so "3", "3.0" and "+3" are the same class.
std::optional<std::int64_t> Targets::known_id(const std::string& text) const {
  if (!numeric_ && !counted_) {
    const auto found = ids_by_name_.find(text);
    return found == ids_by_name_.end() ? std::nullopt : std::optional(found->second);
  }
  const auto number = formats::parse_number(text);
  if (!number) return std::nullopt;
  if (counted_) {
    const bool is_one =
        *number >= 0 && *number < static_cast<double>(outputs_) && *number == std::floor(*number);
    return is_one ? std::optional(static_cast<std::int64_t>(*number)) : std::nullopt;
  }
  const auto found = ids_by_number_.find(*number);
  return found == ids_by_number_.end() ? std::nullopt : std::optional(found->second);
}

std::int64_t Targets::id_of(const std::string& text, const formats::RowPlace& place) const {
  if (const auto id = known_id(text)) return *id;
  if (unknown_) return outputs_ - 1;
  fail(ErrorCode::invalid, "{}: the class \"{}\" does not occur in the training data", place.text(),
       excerpt(text));
}

float Targets::value_of(const std::string& text, const formats::RowPlace& place) const {
  const auto number = formats::parse_number(text);
  if (!number) {
    fail(ErrorCode::invalid, "{}: the target \"{}\" is not a number", place.text(), excerpt(text));
  }
  return static_cast<float>(*number);
}

torch::Tensor Targets::room_for(std::int64_t rows) const {
  return classes_ ? torch::empty({rows}, torch::kInt64) : torch::empty({rows, 1}, torch::kFloat32);
}

void Targets::convert(const std::string& text, const formats::RowPlace& place, torch::Tensor& into,
                      std::int64_t row) const {
  if (classes_) {
    into.data_ptr<std::int64_t>()[row] = id_of(text, place);
  } else {
    into.data_ptr<float>()[row] = value_of(text, place);
  }
}

torch::Tensor Targets::convert(const Labels& labels) const {
  torch::Tensor result = room_for(static_cast<std::int64_t>(labels.texts.size()));
  for (std::size_t i = 0; i < labels.texts.size(); ++i) {
    convert(labels.texts[i], {labels.file, labels.lines[i]}, result, static_cast<std::int64_t>(i));
  }
  return result;
}

}  // namespace cohort::data
