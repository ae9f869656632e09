#include <algorithm>

#include "base/fail.h"
#include "data/sources/idx_file.h"
#include "score/row_source.h"

namespace cohort {
namespace {

/// The images of an IDX file, which is mapped and not read; it has no labels.
class ImageRows : public RowSource {
 public:
  ImageRows(const ImageInput& image, const std::string& file)
      : image_(image), pixels_(read_idx(file, 3)) {
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
  const ImageInput& image_;
  torch::Tensor pixels_;
  std::int64_t at_ = 0;
};

}  // namespace

std::unique_ptr<RowSource> open_image_rows(const ImageInput& image, const std::string& file) {
  if (image.shape.size() != 3) {
    fail(ErrorCode::invalid, "the model was not trained on images of one channel");
  }
  return std::make_unique<ImageRows>(image, file);
}

}  // namespace cohort
