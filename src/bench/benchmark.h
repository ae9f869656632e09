#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/program_group.h"
#include "bench/results.h"

namespace cohort::bench {

/// `cohort bench`: Cohort and its peers do the same work, and what is told is how many times better
/// Cohort is.
///
/// A *contender* is somebody who is measured: Cohort, a peer as it is installed, the same peer
/// tuned, a limit that nobody can beat. A *case* is what all of them are asked to do. The speed of
/// a machine may vary by half within minutes, so the figure of one run says little; what is
/// compared is runs that were close in time:
///
///   round 1   case A:  Cohort  peer   limit     case B:  Cohort  peer   limit
///   round 2   case A:  peer   limit  Cohort     case B:  peer   limit  Cohort
///   round 3   case A:  limit  Cohort  peer      …
///
/// Everybody runs once in every round of every case, one after the other, in an order that turns by
/// one from round to round, so that no one always follows the same other. Each run is a new group
/// of processes, one core per worker. From each round comes one ratio of Cohort to each other
/// contender; the median of the rounds' ratios is the result. A contender that fails in a round has
/// no value there, and the others go on.
///
/// Peers run twice (peers.h): as their packages install them, and tuned, with every setting that
/// Cohort gives itself. A win over the first alone may be malloc's or the kernels'; a win over the
/// second is Cohort's.

/// The words of `cohort bench NAME`.
struct BenchOptions {
  int rounds = 7;
  std::vector<std::string> only;  ///< Names of cases or contenders; empty: all.
  bool quick = false;             ///< Tiny work and one round, to see that everything runs.
  std::string json_path;          ///< Empty: write none.
  std::string against;            ///< Another build of this command to run beside it; empty: none.
  std::string python;             ///< Whose PyTorch is the peer; empty: the system's.
};

/// What every contender is asked to do, such as "train this network with 2 workers".
struct Case {
  std::string name;  ///< For --only; several cases may share one.
  int workers = 1;
  std::vector<std::string> words;  ///< What tells a program to do it.
};

/// Someone who is measured. Every round of every case is a new group of processes.
struct Contender {
  std::string name;   ///< For --only; settings of one peer share it.
  std::string label;  ///< For the table.
  std::function<ProgramGroup(const Case&)> group;
  std::function<bool(const Case&)> takes_part = [](const Case&) { return true; };
  bool own = false;  ///< It runs this command, so `against` can take its place.
};

/// A contender that is not measured, and why.
struct LeftOut {
  std::string name;
  std::string reason;
};

/// What a contender's processes said in one round of one case.
struct Measurement {
  const Case& what;
  const Contender& who;
  std::vector<nlohmann::json> lines;  ///< One of each program of the group.
  double started_at = 0;              ///< On the clock of seconds_now().
};

/// One value that was read from a measurement.
struct Reading {
  Metric metric;
  std::string label;  ///< Whose line of the table it goes to.
  double value = 0;
};

/// A benchmark is data: who does what, and how their lines become values.
struct Benchmark {
  std::string name;
  std::vector<Case> cases;
  std::vector<Contender> contenders;  ///< The first is the reference of all ratios.
  std::vector<LeftOut> left_out;
  std::vector<std::string> notes = {};  ///< Said above the table, such as a peer's version.
  /// May throw nlohmann::json::exception: then the run counts as failed.
  std::function<std::vector<Reading>(const Measurement&)> read;
  std::function<std::string(const Results&)> conclude = {};  ///< What to say below the table.
};

/// Runs all rounds, prints the table and writes the JSON file. Returns the exit code: 1 where the
/// reference failed. Throws Error(invalid) for options that make no sense, such as fewer than 7
/// rounds.
int run_benchmark(Benchmark benchmark, const BenchOptions& options);

// ---- the benchmarks; each has a file of its name

/// Sums of float32 arrays between processes of one machine: Cohort's shared memory, a bare loop,
/// Open MPI, Gloo.
Benchmark allreduce_benchmark(const BenchOptions& options);

/// Training of four networks, 2 workers and 1: Cohort, DistributedDataParallel, a plain LibTorch
/// loop, that loop with MPI, and two processes that do not talk.
Benchmark train_benchmark(const BenchOptions& options);

/// The same contenders, only from the start of the command to the end of the first step.
Benchmark start_benchmark(const BenchOptions& options);

/// Programs with loops of their own (cohort/data_parallel.h) in place of Cohort's: the networks and
/// peers of train_benchmark, and sums of their tensors beside Open MPI's.
Benchmark loop_benchmark(const BenchOptions& options);

/// Pushes and pulls of float32 arrays between workers and parameter servers of one machine:
/// Cohort's shared memory, its gRPC, and plain gRPC calls.
Benchmark ps_benchmark(const BenchOptions& options);

/// Training with one checkpoint in 100 steps and without any, in turns: what checkpoints cost.
Benchmark checkpoint_benchmark(const BenchOptions& options);

// ---- and what is no Benchmark

/// The words of `cohort bench strategies JOB`.
struct StrategiesOptions {
  std::string job_file;
  std::vector<std::string> overrides;  ///< As `cohort train --set` takes them; for every strategy.
  std::vector<std::string> only;       ///< Labels or parts of them; empty: all.
  std::string folder;                  ///< Where runs, table and plot go; it must not exist yet.
  bool quick = false;                  ///< A few steps each, to see that everything runs.
};

/// Trains one job with every strategy, one after the other, and compares them. Unlike a Benchmark
/// it has no peers and no rounds: one run each, as long as the job says. What is compared is what a
/// strategy learns for its time and its bytes.
///
/// Prints a table, and writes into the folder, beside the runs' own:
///
///   strategies.md     the table
///   strategies.json   the figures and the kernels that they were measured with
///   strategies.svg    loss against time and against bytes
///
/// A run that fails is told and does not cost the others' results. Returns the exit code: 1 where a
/// run failed. Throws Error(invalid) where the folder exists or `only` names no strategy, and what
/// load_job() throws.
int compare_strategies(const StrategiesOptions& options);

}  // namespace cohort::bench
