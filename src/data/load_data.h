#pragma once

#include <cohort/dataset.h>
#include <cohort/job.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/preprocessing/preprocessing.h"
#include "tensor/data_spec.h"

namespace cohort::data {

/// What loading data gives: samples, what a model must know of them, and what was learned on the
/// way from raw rows to them. Both sets are there and have samples. Datasets are immutable, so any
/// number of threads, and processes forked later, may use them at once.
struct LoadedData {
  std::shared_ptr<const Dataset> train;
  std::shared_ptr<const Dataset> validation;
  tensor::DataSpec spec;
  Preprocessing preprocessing = {};
  std::string note = {};  ///< What the user should know, as a sentence; mostly empty.
};

/// The names `[data] kind` can have, for checks of the job and for messages.
std::vector<std::string> data_kinds();

/// The samples a job trains and validates on: those of a program (`options.own_train`), or of the
/// files that options name. The same options, seed and files give the same data.
///
/// The launcher calls it once, before it forks the workers, which thus share the memory; scoring
/// calls it again for a run's own samples. Throws Error: invalid for options or file contents that
/// make no sense, corrupt for a file that fails its checks, not_found for one that is not there,
/// no_space for more than memory holds. docs/data.md describes every kind.
LoadedData load_data(const DataOptions& options, std::uint64_t seed);

}  // namespace cohort::data
