#pragma once

#include <string>
#include <vector>

#include "bench/benchmark.h"

namespace cohort {

/// Sums of float32 arrays between processes of one machine: Cohort's shared memory, a bare loop,
/// Open MPI, Gloo.
Benchmark allreduce_benchmark(const BenchOptions& options);

/// Training of four networks, 2 workers and 1: Cohort, DistributedDataParallel, a plain LibTorch
/// loop, that loop with MPI, and two processes that do not talk.
Benchmark train_benchmark(const BenchOptions& options);

/// The same contenders, only from the start of the command to the end of the first step.
Benchmark start_benchmark(const BenchOptions& options);

/// Pushes and pulls of float32 arrays between workers and parameter servers of one machine:
/// Cohort's shared memory, its gRPC, and plain gRPC calls.
Benchmark ps_benchmark(const BenchOptions& options);

/// Training with one checkpoint in 100 steps and without any, in turns: what checkpoints cost.
Benchmark checkpoint_benchmark(const BenchOptions& options);

/// What Cohort's own contenders run in a process of their own; `words` are those after
/// `cohort bench worker`. Prints one line of JSON.
void run_bench_worker(const std::vector<std::string>& words);

/// The kinds of worker: sums (words: "cohort" or "bare", ranks, BYTES:REPEATS...), training (words:
/// network, workers, steps not timed, steps timed, and if wanted steps between checkpoints) and
/// calls of servers (words: "memory" or "remote", workers, servers, BYTES:REPEATS...).
void run_sum_worker(const std::vector<std::string>& words);
void run_train_worker(const std::vector<std::string>& words);
void run_ps_worker(const std::vector<std::string>& words);

}  // namespace cohort
