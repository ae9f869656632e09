#include "data/libsvm.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/excerpt.h"
#include "base/fail.h"
#include "base/files.h"
#include "base/memory_room.h"
#include "data/labels.h"
#include "data/parse_number.h"
#include "data/split.h"

namespace cohort {
namespace {

/// The samples become a dense table, so a few bytes of text can ask for any amount of memory. A
/// table is made where it is small, where it is not absurdly larger than the file (real files that
/// are sparse are about 100 times as large), or where the job itself says how wide it is.
constexpr std::int64_t kMostFeatures = 1 << 24;
constexpr std::int64_t kSmallBytes = 256 << 20;
constexpr std::int64_t kLargestGrowth = 1000;

struct Entry {
  std::int64_t row;
  std::int64_t column;  ///< From 0.
  float value;
};

struct SparseTable {
  std::vector<Entry> entries;
  std::int64_t width = 0;       ///< The largest index.
  std::int64_t file_bytes = 0;  ///< Of the text it was read from.
  Labels labels;

  std::int64_t rows() const { return static_cast<std::int64_t>(labels.texts.size()); }
};

/// The text up to the next blank; takes it and the blanks off `rest`.
std::string_view take_word(std::string_view& rest) {
  rest = trimmed(rest);
  const std::string_view word = rest.substr(0, rest.find_first_of(" \t"));
  rest.remove_prefix(word.size());
  return word;
}

/// Reads "index:value"; indices count from 1 and ascend.
void read_pair(SparseTable& table, std::string_view word, std::int64_t line, std::int64_t& before) {
  const std::size_t colon = word.find(':');
  std::int64_t index = 0;
  const auto parsed =
      std::from_chars(word.data(), word.data() + std::min(colon, word.size()), index);
  const auto value =
      colon == std::string_view::npos ? std::nullopt : parse_number(word.substr(colon + 1));
  if (!value || parsed.ec != std::errc() || parsed.ptr != word.data() + colon) {
    fail(ErrorCode::invalid, "{} line {}: \"{}\" is not of the form index:value", table.labels.file,
         line, excerpt(word));
  }
  if (index <= before) {
    fail(ErrorCode::invalid, "{} line {}: index {} comes after {}; indices start at 1 and ascend",
         table.labels.file, line, index, before);
  }
  if (index > kMostFeatures) {
    fail(ErrorCode::invalid, "{} line {}: index {} is too large; there can be {} features",
         table.labels.file, line, index, kMostFeatures);
  }
  before = index;
  table.width = std::max(table.width, index);
  table.entries.push_back({table.rows() - 1, index - 1, static_cast<float>(*value)});
}

void read_line(SparseTable& table, std::string_view text, std::int64_t line) {
  text = text.substr(0, text.find('#'));  // A comment ends the line.
  if (text.ends_with('\r')) text.remove_suffix(1);
  const std::string_view label = take_word(text);
  if (label.empty()) return;
  if (!parse_number(label)) {
    fail(ErrorCode::invalid, "{} line {}: the label \"{}\" is not a number", table.labels.file,
         line, excerpt(label));
  }
  table.labels.add(std::string(label), line);
  std::int64_t before = 0;
  for (std::string_view word = take_word(text); !word.empty(); word = take_word(text)) {
    read_pair(table, word, line, before);
  }
}

SparseTable read_table(const std::string& path) {
  const std::string content = read_file(path);
  SparseTable table;
  table.file_bytes = static_cast<std::int64_t>(content.size());
  table.labels.file = path;
  std::string_view rest = content;
  for (std::int64_t line = 1; !rest.empty(); ++line) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    read_line(table, rest.substr(0, end), line);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (table.rows() == 0) fail(ErrorCode::invalid, "{} has no samples", path);
  return table;
}

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

torch::Tensor dense(const SparseTable& table, std::int64_t width, bool width_is_given) {
  if (table.width > width) {
    fail(ErrorCode::invalid, "{} has a feature with index {}, but features is {}",
         table.labels.file, table.width, width);
  }
  check_dense_size(table, width, width_is_given);
  torch::Tensor result = torch::zeros({table.rows(), width});
  auto* values = result.data_ptr<float>();
  for (const Entry& entry : table.entries) values[entry.row * width + entry.column] = entry.value;
  return result;
}

}  // namespace

LoadedData load_libsvm(const DataOptions& options, std::uint64_t seed) {
  if (options.path.empty()) fail(ErrorCode::invalid, "libsvm data needs a path: the file to read");
  const SparseTable table = read_table(options.path);
  const Targets targets(options, table.labels);
  SparseTable validation;
  if (!options.validation_path.empty()) validation = read_table(options.validation_path);
  const bool given = options.features > 0;
  const std::int64_t width = given ? options.features : std::max(table.width, validation.width);
  if (width == 0) fail(ErrorCode::invalid, "{} has labels but no features", options.path);

  LoadedData data;
  data.spec = {.input_shape = {width}, .classes = targets.classes(), .outputs = targets.outputs()};
  data.train =
      std::make_shared<TensorDataset>(dense(table, width, given), targets.convert(table.labels));
  if (!options.validation_path.empty()) {
    data.validation = std::make_shared<TensorDataset>(dense(validation, width, given),
                                                      targets.convert(validation.labels));
    return data;
  }
  Split split = split_samples(options.path, table.rows(), options.validation_fraction, seed);
  data.validation = std::make_shared<Subset>(data.train, std::move(split.validation));
  data.train = std::make_shared<Subset>(data.train, std::move(split.train));
  return data;
}

}  // namespace cohort
