#include <algorithm>

#include "base/fail.h"
#include "data/sources/text_window.h"
#include "score/row_source.h"

namespace cohort {
namespace {

/// A table may be as wide as memory is; a batch of it has no more than so many floats.
constexpr std::int64_t kMostFloats = 4 << 20;

/// Lines with a label say what is right; where none has one, there is nothing to compare with.
class LibsvmRows : public RowSource {
 public:
  LibsvmRows(const SparseInput& sparse, const Targets& targets, const std::string& file)
      : sparse_(sparse), targets_(targets), reader_(file) {
    if (!read()) fail(ErrorCode::invalid, "{} has no samples", file);
    has_labels_ = !row_.label.empty();
  }

  std::optional<Batch> next() override {
    if (!has_row_) return std::nullopt;
    const std::int64_t most =
        std::clamp<std::int64_t>(kMostFloats / sparse_.width, 1, kRowsOfBatch);
    torch::Tensor input = torch::empty({most, sparse_.width});
    torch::Tensor target = targets_.room_for(has_labels_ ? most : 0);
    std::int64_t rows = 0;
    for (; has_row_ && rows < most; ++rows, read()) {
      const RowPlace place{reader_.file(), reader_.line()};
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
  bool read() {
    std::string_view line;
    for (has_row_ = false; !has_row_ && reader_.next(line);) {
      has_row_ = read_sparse_row(line, {reader_.file(), reader_.line()}, row_);
    }
    return has_row_;
  }

  const SparseInput& sparse_;
  const Targets& targets_;
  LineReader reader_;
  SparseRow row_;
  bool has_row_ = false;
  bool has_labels_ = false;
};

}  // namespace

std::unique_ptr<RowSource> open_libsvm_rows(const SparseInput& sparse, const Targets& targets,
                                            const std::string& file) {
  return std::make_unique<LibsvmRows>(sparse, targets, file);
}

}  // namespace cohort
