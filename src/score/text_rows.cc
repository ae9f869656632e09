#include <algorithm>

#include "base/fail.h"
#include "data/sources/text_window.h"
#include "score/row_source.h"

namespace cohort {
namespace {

/// As the samples of text data: row i is the `context` bytes from i * context on, what is right are
/// the same, one byte later.
class TextRows : public RowSource {
 public:
  TextRows(const TextInput& text, const std::string& file) : text_(text), window_(file) {
    if (!fill(1)) {
      fail(ErrorCode::invalid, "{} has {} characters; the model sees {}, so at least {} are needed",
           file, window_.rest().size(), text_.context, text_.context + 1);
    }
  }

  std::optional<Batch> next() override {
    if (!fill(kRowsOfBatch) && !fill(1)) return std::nullopt;
    const std::string_view rest = window_.rest();
    const auto context = static_cast<std::size_t>(text_.context);
    const auto rows = std::min<std::int64_t>(
        kRowsOfBatch, static_cast<std::int64_t>((rest.size() - 1) / context));
    const auto taken = static_cast<std::size_t>(rows) * context;
    text_.vocabulary.check(rest.substr(0, taken + 1), window_.file(), line_);
    Batch batch{torch::empty({rows, text_.context}, torch::kInt64),
                torch::empty({rows, text_.context}, torch::kInt64)};
    auto* input = batch.input.data_ptr<std::int64_t>();
    auto* target = batch.target.data_ptr<std::int64_t>();
    for (std::size_t i = 0; i < taken; ++i) {
      *input++ = text_.vocabulary.id(rest[i]);
      *target++ = text_.vocabulary.id(rest[i + 1]);
    }
    line_ += std::count(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(taken), '\n');
    window_.take(taken);
    return batch;
  }

 private:
  /// Whether there are characters of so many rows to look at.
  bool fill(std::int64_t rows) {
    const auto wanted = static_cast<std::size_t>(rows * text_.context) + 1;
    while (window_.rest().size() < wanted) {
      if (window_.rest().size() >= TextWindow::kMostBytes || !window_.extend(line_)) return false;
    }
    return true;
  }

  const TextInput& text_;
  TextWindow window_;
  std::int64_t line_ = 1;
};

}  // namespace

std::unique_ptr<RowSource> open_text_rows(const TextInput& text, const std::string& file) {
  return std::make_unique<TextRows>(text, file);
}

}  // namespace cohort
