#include "data/sources/sources.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/files.h"
#include "base/integers.h"
#include "base/memory_room.h"
#include "data/datasets.h"
#include "data/preprocessing/inputs.h"
#include "formats/sparse_row.h"
#include "formats/text_window.h"

namespace cohort::data {
namespace {

/// The samples become a dense table, so a few bytes of text can ask for any amount of memory. A
/// table is made where it is small, where it is not absurdly larger than the file (real files that
/// are sparse are about 100 times as large), or where the job itself says how wide it is.
constexpr std::int64_t kSmallBytes = 256 << 20;
constexpr std::int64_t kLargestGrowth = 1000;

/// A file as it was read: entries of all rows behind each other, without the zeros.
struct SparseTable {
  std::vector<formats::SparseRow::Entry> entries;  ///< Row after row.
  std::vector<std::size_t> row_ends;               ///< In `entries`.
  std::int64_t width = 0;                          ///< The largest index.
  std::int64_t file_bytes = 0;                     ///< Of the text it was read from.
  Labels labels;

  std::int64_t rows() const { return static_cast<std::int64_t>(labels.texts.size()); }
};

/// Two passes, since nobody knows how wide the table is before its last line was read: entries are
/// gathered first, and the dense table is made of them when its width is known and fits into memory.
/// Every line needs a label here; scoring takes lines without one.
SparseTable read_sparse_table(const std::string& path) {
  SparseTable table;
  table.labels.file = path;
  table.file_bytes = static_cast<std::int64_t>(InputFile(path).size());
  formats::LineReader reader(path);
  formats::SparseRow row;
  for (std::string_view text; reader.next(text);) {
    const formats::RowPlace place{path, reader.line()};
    if (!formats::read_sparse_row(text, place, row)) continue;
    if (row.label.empty()) {
      fail(ErrorCode::invalid, "{}: the label \"{}\" is not a number", place.text(),
           excerpt(formats::trimmed(text).substr(0, formats::trimmed(text).find_first_of(" \t#"))));
    }
    table.labels.add(row.label, reader.line());
    table.entries.insert(table.entries.end(), row.entries.begin(), row.entries.end());
    table.row_ends.push_back(table.entries.size());
    if (!row.entries.empty()) table.width = std::max(table.width, row.entries.back().column + 1);
  }
  if (table.rows() == 0) fail(ErrorCode::invalid, "{} has no samples", path);
  return table;
}

/// By kSmallBytes and kLargestGrowth above, and by the memory that there is.
void check_dense_size(const SparseTable& table, std::int64_t width, bool width_is_given) {
  const std::int64_t float_bytes = sizeof(float);
  const auto bytes = checked_product(table.rows(), width, float_bytes);
  const std::int64_t fitting = std::max(kSmallBytes, table.file_bytes * kLargestGrowth);
  if (!bytes || (*bytes > fitting && !width_is_given)) {
    fail(ErrorCode::invalid,
         "{} has {} bytes, {} samples and indices up to {}, which is out of proportion; if that is "
         "right, set data.features = {}",
         table.labels.file, table.file_bytes, table.rows(), table.width, width);
  }
  check_memory_room(table.labels.file + " as a dense table", static_cast<std::uint64_t>(*bytes));
}

/// The table that training uses, zeros and all.
torch::Tensor dense(const SparseTable& table, std::int64_t width, bool width_is_given) {
  if (table.width > width) {
    fail(ErrorCode::invalid, "{} has a feature with index {}, but features is {}",
         table.labels.file, table.width, width);
  }
  check_dense_size(table, width, width_is_given);
  torch::Tensor result = torch::zeros({table.rows(), width});
  auto* values = result.data_ptr<float>();
  std::size_t at = 0;
  for (const std::size_t end : table.row_ends) {
    for (; at < end; ++at) values[table.entries[at].column] = table.entries[at].value;
    values += width;
  }
  return result;
}

}  // namespace

// A model's width is that of the widest row of both files, or what the job says; rows that are
// narrower have zeros at their end.
LoadedData load_libsvm(const DataOptions& options, std::uint64_t seed) {
  if (options.path.empty()) fail(ErrorCode::invalid, "libsvm data needs a path: the file to read");
  const SparseTable table = read_sparse_table(options.path);
  const bool cut = options.validation_path.empty();
  check_task(options);
  SparseTable validation;
  if (!cut) validation = read_sparse_table(options.validation_path);
  Split split{.train = all_rows(table.rows()), .validation = {}};
  if (cut) split = split_samples(options.path, table.rows(), options.validation_fraction, seed);
  const Targets targets(options, table.labels, split.train);
  const bool given = options.features > 0;
  const std::int64_t width = given ? options.features : std::max(table.width, validation.width);
  if (width == 0) fail(ErrorCode::invalid, "{} has labels but no features", options.path);

  LoadedData data;
  data.spec = {.input_shape = {width}, .classes = targets.classes(), .outputs = targets.outputs()};
  data.preprocessing = {SparseInput{width}, targets};
  data.train =
      std::make_shared<TensorDataset>(dense(table, width, given), targets.convert(table.labels));
  if (!cut) {
    data.validation = std::make_shared<TensorDataset>(dense(validation, width, given),
                                                      targets.convert(validation.labels));
    return data;
  }
  data.validation = std::make_shared<Subset>(data.train, std::move(split.validation));
  data.train = std::make_shared<Subset>(data.train, std::move(split.train));
  return data;
}

}  // namespace cohort::data
