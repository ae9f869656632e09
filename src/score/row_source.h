#pragma once

#include <cohort/dataset.h>

#include <memory>
#include <optional>
#include <string>

#include "artefact/artefact.h"

namespace cohort::score {

/// Rows of a file on their way to a model, a batch at a time, so that a file of any size is scored
/// in little memory. They come preprocessed as the training samples were, by the same functions
/// (data/preprocessing/). Opening a source checks what the first rows show; next() throws for the
/// others, so some batches may have been scored before a broken line is found. For one thread.
class RowSource {
 public:
  virtual ~RowSource() = default;

  /// Nothing at the end. `target` of the batch is undefined where the file does not say what is
  /// right. Throws Error(invalid) naming file and line.
  virtual std::optional<Batch> next() = 0;
};

/// The rows of a file for the model of `artefact`: CSV, LIBSVM, IDX images or text, as the data was
/// that it was trained on. The artefact outlives the source. Throws Error(invalid) for data that
/// comes out of no file, and for a file that is not of that kind.
std::unique_ptr<RowSource> open_rows(const artefact::Artefact& artefact, const std::string& file);

/// Rows of a batch at most.
inline constexpr std::int64_t kRowsOfBatch = 256;

// In table_rows.cc, for open_rows(). What they refer to outlives the source.
std::unique_ptr<RowSource> open_csv_rows(const data::TableInput& table,
                                         const data::Targets& targets, const std::string& file);
std::unique_ptr<RowSource> open_libsvm_rows(const data::SparseInput& sparse,
                                            const data::Targets& targets, const std::string& file);

}  // namespace cohort::score
