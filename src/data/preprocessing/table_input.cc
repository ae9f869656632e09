#include "data/preprocessing/inputs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "base/fail.h"

namespace cohort::data {
namespace {

/// The same columns in the same order, with the target or without: then names need not be unique.
std::optional<ColumnMap> map_by_place(const TableInput& table, std::size_t columns) {
  ColumnMap map;
  map.has_target = columns == table.width() + 1;
  if (!map.has_target && columns != table.width()) return std::nullopt;
  std::size_t feature = 0;
  for (std::size_t column = 0; column < columns; ++column) {
    const bool is_target = map.has_target && column == table.target_column;
    map.feature_of.push_back(is_target ? ColumnMap::kTarget : feature++);
  }
  return map;
}

/// Columns in any order, with the target or without, each known by its name.
ColumnMap map_by_name(const TableInput& table, const std::vector<std::string>& names,
                      const std::string& file) {
  std::map<std::string, std::size_t> known{{table.target, ColumnMap::kTarget}};
  for (std::size_t i = 0; i < table.width(); ++i) {
    if (!known.emplace(table.features[i], i).second) {
      fail(ErrorCode::invalid,
           "the model was trained with two columns called \"{}\", so those of {} cannot be told by "
           "their names",
           excerpt(table.features[i]), file);
    }
  }
  ColumnMap map;
  std::map<std::string, bool> seen;
  for (const std::string& name : names) {
    const auto found = known.find(name);
    if (found == known.end()) {
      fail(ErrorCode::invalid, "{} has the column \"{}\", which the model was not trained with",
           file, excerpt(name));
    }
    if (std::exchange(seen[name], true)) {
      fail(ErrorCode::invalid, "{} has the column \"{}\" twice", file, excerpt(name));
    }
    map.feature_of.push_back(found->second);
  }
  for (const std::string& name : table.features) {
    if (!seen[name]) {
      fail(ErrorCode::invalid, "{} has no column \"{}\", which the model was trained with", file,
           excerpt(name));
    }
  }
  map.has_target = seen[table.target];
  return map;
}

}  // namespace

std::vector<std::string> TableInput::columns() const {
  std::vector<std::string> all = features;
  all.insert(all.begin() + static_cast<std::ptrdiff_t>(target_column), target);
  return all;
}

float TableInput::number(std::size_t feature, const std::string& text,
                         const formats::RowPlace& place) const {
  const auto number = formats::parse_number(text);
  if (!number) {
    fail(ErrorCode::invalid, "{}, column \"{}\": \"{}\" is not a number", place.text(),
         excerpt(features[feature]), excerpt(text));
  }
  return static_cast<float>(*number);
}

// In double and in two passes, the mean first: a column may be far from 0 compared to its spread.
// Only training rows are looked at, so that validation samples stay unseen.
void TableInput::learn(std::span<const float> raw, std::span<const std::int64_t> train) {
  mean.assign(width(), 0);
  factor.assign(width(), 1);
  for (std::size_t column = 0; column < width(); ++column) {
    double sum = 0, squares = 0;
    const auto value = [&](std::int64_t row) {
      return static_cast<double>(raw[static_cast<std::size_t>(row) * width() + column]);
    };
    for (const std::int64_t row : train) sum += value(row);
    mean[column] = sum / static_cast<double>(train.size());
    for (const std::int64_t row : train) {
      squares += (value(row) - mean[column]) * (value(row) - mean[column]);
    }
    const double deviation = std::sqrt(squares / static_cast<double>(train.size()));
    if (deviation > 0) factor[column] = 1 / deviation;  // A constant column becomes 0.
  }
}

// In double until the last step, as learn() computes.
void TableInput::standardise(std::span<const float> raw, float* input) const {
  std::size_t column = 0;
  for (const float value : raw) {
    *input++ = static_cast<float>((value - mean[column]) * factor[column]);
    if (++column == width()) column = 0;
  }
}

// By place where the names are exactly those of the training, which need not be unique then; by
// name otherwise.
ColumnMap map_columns(const TableInput& table, const std::vector<std::string>& first,
                      const std::string& file) {
  if (table.header) {
    const std::vector<std::string> all = table.columns();
    if (first == all || first == table.features) return *map_by_place(table, first.size());
    return map_by_name(table, first, file);
  }
  if (auto map = map_by_place(table, first.size())) return *std::move(map);
  fail(ErrorCode::invalid,
       "{} has {} columns; the model was trained with {}, or {} with the target", file,
       first.size(), table.width(), table.width() + 1);
}

}  // namespace cohort::data
