#pragma once

/// Everything a program needs to train its own LibTorch model on many processes.
/// examples/own_model is a whole program.

#include <cohort/dataset.h>
#include <cohort/error.h>
#include <cohort/job.h>
#include <cohort/kernels.h>
#include <cohort/loaded_model.h>
#include <cohort/model.h>
#include <cohort/run.h>
#include <cohort/train.h>
