#include "data/labels.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/excerpt.h"
#include "base/fail.h"
#include "base/nearest_name.h"
#include "data/parse_number.h"

namespace cohort {
namespace {

bool wants_classes(const DataOptions& options) {
  const bool left_at_default = options.task == DataOptions().task;
  if (left_at_default) return true;
  check_known("task of " + options.kind + " data", options.task, {"classes", "values"});
  return options.task == "classes";
}

double number_at(const Labels& labels, std::size_t at) {
  const auto number = parse_number(labels.texts[at]);
  if (!number) {
    fail(ErrorCode::invalid, "{} line {}: the target \"{}\" is not a number", labels.file,
         labels.lines[at], excerpt(labels.texts[at]));
  }
  return *number;
}

template <class Map>
void count_up(Map& ids) {
  std::int64_t next = 0;
  for (auto& entry : ids) entry.second = next++;
}

}  // namespace

void Labels::add(std::string text, std::int64_t line) {
  texts.push_back(std::move(text));
  lines.push_back(line);
}

Targets::Targets(const DataOptions& options, const Labels& train)
    : classes_(wants_classes(options)) {
  if (!classes_) return;
  numeric_ = std::all_of(train.texts.begin(), train.texts.end(),
                         [](const std::string& text) { return parse_number(text).has_value(); });
  for (std::size_t i = 0; i < train.texts.size(); ++i) {
    if (!numeric_) {
      names_[train.texts[i]] = 0;
      continue;
    }
    const double number = number_at(train, i);
    if (number != std::floor(number)) {
      fail(ErrorCode::invalid,
           "{} line {}: the target {} is not a class; set task = \"values\" to predict numbers",
           train.file, train.lines[i], excerpt(train.texts[i]));
    }
    numbers_[number] = 0;
  }
  count_up(numbers_);
  count_up(names_);
  if (outputs() < 2) {
    fail(ErrorCode::invalid, "{}: all samples are of the class \"{}\"; at least 2 are needed",
         train.file, train.texts.empty() ? "" : excerpt(train.texts[0]));
  }
}

std::int64_t Targets::outputs() const {
  return classes_ ? static_cast<std::int64_t>(numeric_ ? numbers_.size() : names_.size()) : 1;
}

std::int64_t Targets::id_of(const Labels& labels, std::size_t at) const {
  if (numeric_) {
    const auto number = parse_number(labels.texts[at]);
    const auto found = number ? numbers_.find(*number) : numbers_.end();
    if (found != numbers_.end()) return found->second;
  } else if (const auto found = names_.find(labels.texts[at]); found != names_.end()) {
    return found->second;
  }
  fail(ErrorCode::invalid, "{} line {}: the class \"{}\" does not occur in the training data",
       labels.file, labels.lines[at], excerpt(labels.texts[at]));
}

torch::Tensor Targets::convert(const Labels& labels) const {
  const auto samples = static_cast<std::int64_t>(labels.texts.size());
  torch::Tensor result = classes_ ? torch::empty({samples}, torch::kInt64)
                                  : torch::empty({samples, 1}, torch::kFloat32);
  for (std::size_t i = 0; i < labels.texts.size(); ++i) {
    if (classes_) {
      result.data_ptr<std::int64_t>()[i] = id_of(labels, i);
    } else {
      result.data_ptr<float>()[i] = static_cast<float>(number_at(labels, i));
    }
  }
  return result;
}

}  // namespace cohort
