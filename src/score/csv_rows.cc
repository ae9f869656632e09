#include <algorithm>

#include "base/excerpt.h"
#include "base/fail.h"
#include "data/sources/csv_reader.h"
#include "score/row_source.h"

namespace cohort {
namespace {

class CsvRows : public RowSource {
 public:
  CsvRows(const TableInput& table, const Targets& targets, const std::string& file)
      : table_(table), targets_(targets), reader_(file) {
    if (!reader_.next(fields_)) fail(ErrorCode::invalid, "{} is empty", file);
    columns_ = map_columns(table_, fields_, file);
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
  void read_row(std::vector<float>& raw, torch::Tensor& target, std::int64_t row) {
    const RowPlace place{reader_.file(), reader_.line()};
    if (fields_.size() != columns_.feature_of.size()) {
      fail(ErrorCode::invalid, "{}: it has {} fields, expected {}", place.text(), fields_.size(),
           columns_.feature_of.size());
    }
    raw.resize(raw.size() + table_.width());
    float* numbers = raw.data() + raw.size() - table_.width();
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      const std::size_t feature = columns_.feature_of[i];
      if (feature != ColumnMap::kTarget) {
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

  const TableInput& table_;
  const Targets& targets_;
  CsvReader reader_;
  ColumnMap columns_;
  std::vector<std::string> fields_;
  bool has_record_ = false;
};

}  // namespace

std::unique_ptr<RowSource> open_csv_rows(const TableInput& table, const Targets& targets,
                                         const std::string& file) {
  return std::make_unique<CsvRows>(table, targets, file);
}

}  // namespace cohort
