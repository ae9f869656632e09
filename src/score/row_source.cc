// Which file a model reads, and the rows that are no numbers in lines: images and text.
#include "score/row_source.h"

#include <algorithm>

#include "base/fail.h"
#include "data/sources/mnist_files.h"
#include "formats/text_window.h"

namespace cohort::score {
namespace {

/// The images of an IDX file, which is mapped and not read; it has no labels.
class ImageRows : public RowSource {
 public:
  ImageRows(const data::ImageInput& image, const std::string& file)
      : image_(image), pixels_(data::read_idx(file, 3)) {
    const std::vector<std::int64_t> found = {1, pixels_.size(1), pixels_.size(2)};
    if (found != image_.shape) {
      fail(ErrorCode::invalid, "{} has images of {}x{} pixels; the model was trained on {}", file,
           found[1], found[2], fmt::join(image_.shape, "x"));
    }
  }

  std::optional<Batch> next() override {
    const std::int64_t rows = std::min(kRowsOfBatch, pixels_.size(0) - at_);
    if (rows == 0) return std::nullopt;
    const torch::Tensor some = pixels_.narrow(0, at_, rows);
    at_ += rows;
    Batch batch;
    batch.input = torch::empty({rows, image_.shape[0], image_.shape[1], image_.shape[2]});
    image_.scale(some.data_ptr<std::uint8_t>(), batch.input.data_ptr<float>(),
                 static_cast<std::size_t>(some.numel()));
    return batch;
  }

 private:
  const data::ImageInput& image_;
  torch::Tensor pixels_;
  std::int64_t at_ = 0;
};

/// Cut as the samples of text data: row i is the `context` bytes from i * context on, and what is
/// right are the same, one byte later. A last piece that is shorter is left out.
class TextRows : public RowSource {
 public:
  TextRows(const data::TextInput& text, const std::string& file) : text_(text), window_(file) {
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
      if (window_.rest().size() >= formats::TextWindow::kMostBytes || !window_.extend(line_))
        return false;
    }
    return true;
  }

  const data::TextInput& text_;
  formats::TextWindow window_;
  std::int64_t line_ = 1;
};

/// IDX files have no channels, so only grey images come out of one.
std::unique_ptr<RowSource> open_image_rows(const data::ImageInput& image, const std::string& file) {
  if (image.shape.size() != 3) {
    fail(ErrorCode::invalid, "the model was not trained on images of one channel");
  }
  return std::make_unique<ImageRows>(image, file);
}

}  // namespace

// The kind of file follows from what the preprocessing is, so a model reads what it was trained on.
std::unique_ptr<RowSource> open_rows(const artefact::Artefact& artefact, const std::string& file) {
  const data::Preprocessing& preprocessing = artefact.preprocessing;
  if (const auto* table = std::get_if<data::TableInput>(&preprocessing.input)) {
    return open_csv_rows(*table, preprocessing.targets, file);
  }
  if (const auto* sparse = std::get_if<data::SparseInput>(&preprocessing.input)) {
    return open_libsvm_rows(*sparse, preprocessing.targets, file);
  }
  if (const auto* image = std::get_if<data::ImageInput>(&preprocessing.input)) {
    return open_image_rows(*image, file);
  }
  if (const auto* text = std::get_if<data::TextInput>(&preprocessing.input)) {
    return std::make_unique<TextRows>(*text, file);
  }
  fail(ErrorCode::invalid,
       "the model was trained on {}, which come out of no file, so --input makes no sense; without "
       "it the run's own validation samples are scored",
       artefact.data_kind == "own" ? "a program's own samples" : "generated numbers");
}

}  // namespace cohort::score
