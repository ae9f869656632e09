#include "base/fail.h"
#include "score/row_source.h"

namespace cohort {

std::unique_ptr<RowSource> open_rows(const Artefact& artefact, const std::string& file) {
  const Preprocessing& preprocessing = artefact.preprocessing;
  if (const auto* table = std::get_if<TableInput>(&preprocessing.input)) {
    return open_csv_rows(*table, preprocessing.targets, file);
  }
  if (const auto* sparse = std::get_if<SparseInput>(&preprocessing.input)) {
    return open_libsvm_rows(*sparse, preprocessing.targets, file);
  }
  if (const auto* image = std::get_if<ImageInput>(&preprocessing.input)) {
    return open_image_rows(*image, file);
  }
  if (const auto* text = std::get_if<TextInput>(&preprocessing.input)) {
    return open_text_rows(*text, file);
  }
  fail(ErrorCode::invalid,
       "the model was trained on {}, which come out of no file, so --input makes no sense; without "
       "it the run's own validation samples are scored",
       artefact.data_kind == "own" ? "a program's own samples" : "generated numbers");
}

}  // namespace cohort
