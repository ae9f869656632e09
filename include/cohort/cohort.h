#pragma once

/// Everything a program needs to train its own LibTorch model on many processes: in a loop of its own
/// (group.h, data_parallel.h, distributed_sampler.h; examples/own_loop), or in Cohort's (train.h;
/// examples/own_model).

#include <cohort/data_parallel.h>
#include <cohort/dataset.h>
#include <cohort/distributed_sampler.h>
#include <cohort/error.h>
#include <cohort/group.h>
#include <cohort/job.h>
#include <cohort/kernels.h>
#include <cohort/loaded_model.h>
#include <cohort/model.h>
#include <cohort/run.h>
#include <cohort/train.h>
