#include "data/csv.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/excerpt.h"
#include "base/fail.h"
#include "base/files.h"
#include "base/nearest_name.h"
#include "data/csv_reader.h"
#include "data/labels.h"
#include "data/parse_number.h"
#include "data/split.h"

namespace cohort {
namespace {

struct Table {
  std::vector<std::string> columns;
  std::size_t target = 0;       ///< Which column.
  std::vector<float> features;  ///< Row after row.
  Labels labels;

  std::int64_t rows() const { return static_cast<std::int64_t>(labels.texts.size()); }
  std::int64_t width() const { return static_cast<std::int64_t>(columns.size()) - 1; }
};

std::size_t find_target(const Table& table, const DataOptions& options) {
  if (options.target.empty()) return table.columns.size() - 1;
  check_known("the target column in " + table.labels.file, options.target, table.columns);
  return static_cast<std::size_t>(
      std::find(table.columns.begin(), table.columns.end(), options.target) -
      table.columns.begin());
}

/// Takes the names from the first record, or makes them up: "1", "2", …
void read_columns(Table& table, const std::vector<std::string>& first, const DataOptions& options) {
  table.columns = first;
  if (!options.header) {
    for (std::size_t i = 0; i < first.size(); ++i) table.columns[i] = std::to_string(i + 1);
  }
  if (first.size() < 2) {
    fail(ErrorCode::invalid, "{} has one column; a feature and a target are needed",
         table.labels.file);
  }
  table.target = find_target(table, options);
}

void read_row(Table& table, const std::vector<std::string>& fields, std::int64_t line) {
  const std::string& file = table.labels.file;
  if (fields.size() != table.columns.size()) {
    fail(ErrorCode::invalid, "{} line {}: it has {} fields, expected {}", file, line, fields.size(),
         table.columns.size());
  }
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (i == table.target) {
      if (fields[i].empty()) {
        fail(ErrorCode::invalid, "{} line {}, column \"{}\": the target is missing", file, line,
             excerpt(table.columns[i]));
      }
      table.labels.add(fields[i], line);
      continue;
    }
    const auto number = parse_number(fields[i]);
    if (!number) {
      fail(ErrorCode::invalid, "{} line {}, column \"{}\": \"{}\" is not a number", file, line,
           excerpt(table.columns[i]), excerpt(fields[i]));
    }
    table.features.push_back(static_cast<float>(*number));
  }
}

Table read_table(const std::string& path, const DataOptions& options) {
  const std::string text = read_file(path);
  Table table;
  table.labels.file = path;
  CsvReader reader(path, text);
  std::vector<std::string> fields;
  if (!reader.next(fields)) fail(ErrorCode::invalid, "{} is empty", path);
  read_columns(table, fields, options);
  if (!options.header) read_row(table, fields, reader.line());
  while (reader.next(fields)) read_row(table, fields, reader.line());
  if (table.rows() == 0) fail(ErrorCode::invalid, "{} has a header but no samples", path);
  return table;
}

/// Brings a feature to mean 0 and deviation 1 over the training samples.
class Standardiser {
 public:
  Standardiser(const Table& table, const std::vector<std::int64_t>& train)
      : mean_(static_cast<std::size_t>(table.width())), factor_(mean_.size(), 1) {
    for (std::size_t column = 0; column < mean_.size(); ++column) {
      double sum = 0, squares = 0;
      const auto value = [&](std::int64_t row) {
        return static_cast<double>(
            table.features[static_cast<std::size_t>(row) * mean_.size() + column]);
      };
      for (const std::int64_t row : train) sum += value(row);
      mean_[column] = sum / static_cast<double>(train.size());
      for (const std::int64_t row : train) {
        squares += (value(row) - mean_[column]) * (value(row) - mean_[column]);
      }
      const double deviation = std::sqrt(squares / static_cast<double>(train.size()));
      if (deviation > 0) factor_[column] = 1 / deviation;  // A constant column becomes 0.
    }
  }

  torch::Tensor apply(const Table& table) const {
    torch::Tensor result = torch::empty({table.rows(), table.width()});
    auto* out = result.data_ptr<float>();
    for (std::size_t i = 0; i < table.features.size(); ++i) {
      const std::size_t column = i % mean_.size();
      out[i] = static_cast<float>((table.features[i] - mean_[column]) * factor_[column]);
    }
    return result;
  }

 private:
  std::vector<double> mean_;
  std::vector<double> factor_;
};

std::vector<std::int64_t> all_rows(const Table& table) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(table.rows()));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

std::string listed(const std::vector<std::string>& columns) {
  return excerpt(fmt::format("{}", fmt::join(columns, ", ")), 200);
}

void check_same_columns(const Table& train, const Table& validation) {
  if (train.columns == validation.columns) return;
  fail(ErrorCode::invalid, "the columns of {} ({}) are not those of {} ({})",
       validation.labels.file, listed(validation.columns), train.labels.file,
       listed(train.columns));
}

}  // namespace

LoadedData load_csv(const DataOptions& options, std::uint64_t seed) {
  if (options.path.empty()) fail(ErrorCode::invalid, "csv data needs a path: the file to read");
  const Table table = read_table(options.path, options);
  const Targets targets(options, table.labels);
  LoadedData data;
  data.spec = {
      .input_shape = {table.width()}, .classes = targets.classes(), .outputs = targets.outputs()};

  if (options.validation_path.empty()) {
    Split split = split_samples(options.path, table.rows(), options.validation_fraction, seed);
    const Standardiser standardiser(table, split.train);
    const auto whole =
        std::make_shared<TensorDataset>(standardiser.apply(table), targets.convert(table.labels));
    data.train = std::make_shared<Subset>(whole, std::move(split.train));
    data.validation = std::make_shared<Subset>(whole, std::move(split.validation));
    return data;
  }
  const Table validation = read_table(options.validation_path, options);
  check_same_columns(table, validation);
  const Standardiser standardiser(table, all_rows(table));
  data.train =
      std::make_shared<TensorDataset>(standardiser.apply(table), targets.convert(table.labels));
  data.validation = std::make_shared<TensorDataset>(standardiser.apply(validation),
                                                    targets.convert(validation.labels));
  return data;
}

}  // namespace cohort
