#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/process.h"
#include "bench/results.h"

namespace cohort {

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
  double started_at = 0;
};

struct Reading {
  Metric metric;
  std::string label;  ///< Whose line of the table it goes to.
  double value = 0;
};

struct Benchmark {
  std::string name;
  std::vector<Case> cases;
  std::vector<Contender> contenders;  ///< The first is the reference of all ratios.
  std::vector<LeftOut> left_out;
  std::vector<std::string> notes = {};  ///< Said above the table, such as a peer's version.
  std::function<std::vector<Reading>(const Measurement&)> read;
  std::function<std::string(const Results&)> conclude = {};  ///< What to say below the table.
};

/// Runs all rounds, each contender's after each other's (in an order that turns by one each round,
/// so that no one always follows the same other), prints the table and writes the JSON file.
/// Returns the exit code: 1 where the reference failed. Throws Error(invalid) for options that
/// make no sense.
int run_benchmark(Benchmark benchmark, const BenchOptions& options);

}  // namespace cohort
