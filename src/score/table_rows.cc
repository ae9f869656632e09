// Rows of numbers, a line each, that may say what is right: CSV and LIBSVM files.
#include <algorithm>

#include "base/fail.h"
#include "formats/csv_reader.h"
#include "formats/text_window.h"
#include "score/row_source.h"

namespace cohort::score {
namespace {

/// A table may be as wide as memory is; a batch of it has no more than so many floats.
constexpr std::int64_t kMostFloats = 4 << 20;

/// Records of a CSV file whose columns are those of the training, in any order; the target may be
/// among them. Always one record ahead, to know where the end is.
class CsvRows : public RowSource {
 public:
  CsvRows(const data::TableInput& table, const data::Targets& targets, const std::string& file)
      : table_(table), targets_(targets), reader_(file) {
    if (!reader_.next(fields_)) fail(ErrorCode::invalid, "{} is empty", file);
    columns_ = data::map_columns(table_, fields_, file);
    has_record_ = !table_.header || reader_.next(fields_);
  }

  std::optional<Batch> next() override {
    if (!has_record_) return std::nullopt;
    std::vector<float> raw;
    torch::Tensor target = targets_.room_for(columns_.has_target ? kRowsOfBatch : 0);
    std::int64_t rows = 0;
    for (; has_record_ && rows < kRowsOfBatch; ++rows) {
      read_row(raw, target, rows);
      has_record_ = reader_.next(fields_);
    }
    Batch batch;
    batch.input = torch::empty({rows, static_cast<std::int64_t>(table_.width())});
    table_.standardise(raw, batch.input.data_ptr<float>());
    if (columns_.has_target) batch.target = target.narrow(0, 0, rows);
    return batch;
  }

 private:
  /// Appends the record's numbers to `raw` in the order of the training's features, and its target
  /// to `target`.
  void read_row(std::vector<float>& raw, torch::Tensor& target, std::int64_t row) {
    const formats::RowPlace place{reader_.file(), reader_.line()};
    if (fields_.size() != columns_.feature_of.size()) {
      fail(ErrorCode::invalid, "{}: it has {} fields, expected {}", place.text(), fields_.size(),
           columns_.feature_of.size());
    }
    raw.resize(raw.size() + table_.width());
    float* numbers = raw.data() + raw.size() - table_.width();
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      const std::size_t feature = columns_.feature_of[i];
      if (feature != data::ColumnMap::kTarget) {
        numbers[feature] = table_.number(feature, fields_[i], place);
        continue;
      }
      if (fields_[i].empty()) {
        fail(ErrorCode::invalid, "{}, column \"{}\": the target is missing", place.text(),
             excerpt(table_.target));
      }
      targets_.convert(fields_[i], place, target, row);
    }
  }

  const data::TableInput& table_;
  const data::Targets& targets_;
  formats::CsvReader reader_;
  data::ColumnMap columns_;
  std::vector<std::string> fields_;
  bool has_record_ = false;
};

/// Lines with a label say what is right; where none has one, there is nothing to compare with.
/// Which of the two a file is, its first line says, and the others must agree.
class LibsvmRows : public RowSource {
 public:
  LibsvmRows(const data::SparseInput& sparse, const data::Targets& targets, const std::string& file)
      : sparse_(sparse), targets_(targets), reader_(file) {
    if (!read()) fail(ErrorCode::invalid, "{} has no samples", file);
    has_labels_ = !row_.label.empty();
  }

  std::optional<Batch> next() override {
    if (!has_row_) return std::nullopt;
    // At least one row, however wide it is.
    const std::int64_t most =
        std::clamp<std::int64_t>(kMostFloats / sparse_.width, 1, kRowsOfBatch);
    torch::Tensor input = torch::empty({most, sparse_.width});
    torch::Tensor target = targets_.room_for(has_labels_ ? most : 0);
    std::int64_t rows = 0;
    for (; has_row_ && rows < most; ++rows, read()) {
      const formats::RowPlace place{reader_.file(), reader_.line()};
      if (row_.label.empty() == has_labels_) {
        fail(ErrorCode::invalid, "{}: it has {} label, but the first line has {}", place.text(),
             has_labels_ ? "no" : "a", has_labels_ ? "one" : "none");
      }
      sparse_.expand(row_, place, input.data_ptr<float>() + rows * sparse_.width);
      if (has_labels_) targets_.convert(row_.label, place, target, rows);
    }
    Batch batch{input.narrow(0, 0, rows), {}};
    if (has_labels_) batch.target = target.narrow(0, 0, rows);
    return batch;
  }

 private:
  /// The next line that has something in it, to row_; false at the end.
  bool read() {
    std::string_view line;
    for (has_row_ = false; !has_row_ && reader_.next(line);) {
      has_row_ = formats::read_sparse_row(line, {reader_.file(), reader_.line()}, row_);
    }
    return has_row_;
  }

  const data::SparseInput& sparse_;
  const data::Targets& targets_;
  formats::LineReader reader_;
  formats::SparseRow row_;
  bool has_row_ = false;
  bool has_labels_ = false;
};

}  // namespace

std::unique_ptr<RowSource> open_csv_rows(const data::TableInput& table,
                                         const data::Targets& targets, const std::string& file) {
  return std::make_unique<CsvRows>(table, targets, file);
}

std::unique_ptr<RowSource> open_libsvm_rows(const data::SparseInput& sparse,
                                            const data::Targets& targets, const std::string& file) {
  return std::make_unique<LibsvmRows>(sparse, targets, file);
}

}  // namespace cohort::score
