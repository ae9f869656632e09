#pragma once

#include <cohort/dataset.h>
#include <cohort/job.h>

#include <memory>
#include <string>

#include "data/preprocessing/preprocessing.h"
#include "tensor/data_spec.h"

namespace cohort {

struct LoadedData {
  std::shared_ptr<const Dataset> train;
  std::shared_ptr<const Dataset> validation;
  DataSpec spec;
  Preprocessing preprocessing = {};
  std::string note = {};  ///< What the user should know, as a sentence; mostly empty.
};

}  // namespace cohort
