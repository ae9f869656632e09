#include "data/sources/sources.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/names.h"
#include "data/datasets.h"
#include "formats/csv_reader.h"

namespace cohort::data {
namespace {

/// A file as it was read: numbers are still raw.
struct Table {
  TableInput input;
  std::vector<float> features;  ///< Raw numbers, row after row.
  Labels labels;

  std::int64_t rows() const { return static_cast<std::int64_t>(labels.texts.size()); }
};

/// The column that is predicted: the one the job names, or the last.
std::size_t find_target(const std::vector<std::string>& columns, const std::string& file,
                        const DataOptions& options) {
  if (options.target.empty()) return columns.size() - 1;
  check_known("the target column in " + file, options.target, columns);
  return static_cast<std::size_t>(std::find(columns.begin(), columns.end(), options.target) -
                                  columns.begin());
}

/// Which column is what. Takes the names from the first record, or makes them up: "1", "2", … With
/// made-up names a target is named by its number.
TableInput read_columns(std::vector<std::string> columns, const std::string& file,
                        const DataOptions& options) {
  if (!options.header) {
    for (std::size_t i = 0; i < columns.size(); ++i) columns[i] = std::to_string(i + 1);
  }
  if (columns.size() < 2) {
    fail(ErrorCode::invalid, "{} has one column; a feature and a target are needed", file);
  }
  TableInput input;
  input.header = options.header;
  input.target_column = find_target(columns, file, options);
  input.target = columns[input.target_column];
  columns.erase(columns.begin() + static_cast<std::ptrdiff_t>(input.target_column));
  input.features = std::move(columns);
  return input;
}

/// Fields to numbers and the label, both checked with their place.
void read_row(Table& table, const std::vector<std::string>& fields, std::int64_t line) {
  const formats::RowPlace place{table.labels.file, line};
  const TableInput& input = table.input;
  if (fields.size() != input.width() + 1) {
    fail(ErrorCode::invalid, "{}: it has {} fields, expected {}", place.text(), fields.size(),
         input.width() + 1);
  }
  for (std::size_t i = 0, feature = 0; i < fields.size(); ++i) {
    if (i != input.target_column) {
      table.features.push_back(input.number(feature++, fields[i], place));
      continue;
    }
    if (fields[i].empty()) {
      fail(ErrorCode::invalid, "{}, column \"{}\": the target is missing", place.text(),
           excerpt(input.target));
    }
    table.labels.add(fields[i], line);
  }
}

/// Without a header the first record is a sample too.
Table read_table(const std::string& path, const DataOptions& options) {
  Table table;
  table.labels.file = path;
  formats::CsvReader reader(path);
  std::vector<std::string> fields;
  if (!reader.next(fields)) fail(ErrorCode::invalid, "{} is empty", path);
  table.input = read_columns(fields, path, options);
  if (!options.header) read_row(table, fields, reader.line());
  while (reader.next(fields)) read_row(table, fields, reader.line());
  if (table.rows() == 0) fail(ErrorCode::invalid, "{} has a header but no samples", path);
  return table;
}

torch::Tensor standardised(const TableInput& input, const Table& table) {
  torch::Tensor result =
      torch::empty({table.rows(), static_cast<std::int64_t>(table.input.width())});
  input.standardise(table.features, result.data_ptr<float>());
  return result;
}

std::string listed(const std::vector<std::string>& columns) {
  return excerpt(fmt::format("{}", fmt::join(columns, ", ")), 200);
}

/// A second file must have the columns of the first, in their order.
void check_same_columns(const Table& train, const Table& validation) {
  const std::vector<std::string> theirs = validation.input.columns(), ours = train.input.columns();
  if (ours == theirs) return;
  fail(ErrorCode::invalid, "the columns of {} ({}) are not those of {} ({})",
       validation.labels.file, listed(theirs), train.labels.file, listed(ours));
}

}  // namespace

// Means and factors are learned of the training rows only; classes of all rows, unless there is an
// unknown class for those that training has not seen (Targets).
// The order matters: the file is read, samples are set aside, and only then is anything learned of
// the rest. What validation samples look like must not be known to the model, not even by a mean.
LoadedData load_csv(const DataOptions& options, std::uint64_t seed) {
  if (options.path.empty()) fail(ErrorCode::invalid, "csv data needs a path: the file to read");
  Table table = read_table(options.path, options);
  const bool cut = options.validation_path.empty();
  check_task(options);
  Split split{.train = all_rows(table.rows()), .validation = {}};
  if (cut) split = split_samples(options.path, table.rows(), options.validation_fraction, seed);
  const Targets targets(options, table.labels, split.train);
  table.input.learn(table.features, split.train);

  LoadedData data;
  data.spec = {.input_shape = {static_cast<std::int64_t>(table.input.width())},
               .classes = targets.classes(),
               .outputs = targets.outputs()};
  data.preprocessing = {table.input, targets};
  data.train = std::make_shared<TensorDataset>(standardised(table.input, table),
                                               targets.convert(table.labels));
  if (cut) {
    data.validation = std::make_shared<Subset>(data.train, std::move(split.validation));
    data.train = std::make_shared<Subset>(data.train, std::move(split.train));
    return data;
  }
  const Table validation = read_table(options.validation_path, options);
  check_same_columns(table, validation);
  data.validation = std::make_shared<TensorDataset>(standardised(table.input, validation),
                                                    targets.convert(validation.labels));
  return data;
}

}  // namespace cohort::data
