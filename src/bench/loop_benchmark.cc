#include <algorithm>
#include <utility>

#include "base/fail.h"
#include "bench/benchmark.h"
#include "bench/measured_process.h"
#include "bench/peers.h"

namespace cohort::bench {
namespace {

// Programs of a user's own, under `cohort run`, beside the peers of two other benchmarks:
//
//   case                     contenders
//   the networks of `train`  bench/loop_train.cc, and all peers of `train`
//   "sums"                   bench/loop_allreduce.cc, on tensors of LibTorch and on those of
//                            Group::empty(), and Open MPI of `allreduce`

constexpr const char* kSums = "sums";

bool is_sums(const Case& one_case) {
  return one_case.name == kSums;
}

/// A program of bench/ as ranks of one `cohort run`, which binds them. A single one would get all
/// cores, so it is bound from outside.
ProgramGroup under_cohort_run(int ranks, const std::string& program,
                              const std::vector<std::string>& words) {
  Program run = cohort_run(ranks, program, words);
  if (ranks == 1) run.core = allowed_cores().front();
  return ProgramGroup{{run}};
}

/// The reference: what it is asked to do decides which of the two programs it is.
Contender own_loop(const std::string& train, const std::string& sum) {
  const auto group = [=](const Case& one_case) {
    return is_sums(one_case)
               ? under_cohort_run(one_case.workers, sum, joined({"any"}, one_case.words))
               : under_cohort_run(one_case.workers, train, one_case.words);
  };
  return {.name = "cohort", .label = "Cohort", .group = group, .own = true};
}

Contender shared_sums(const std::string& sum) {
  const auto group = [=](const Case& one_case) {
    return under_cohort_run(one_case.workers, sum, joined({"shared"}, one_case.words));
  };
  return {.name = "cohort",
          .label = "Cohort, tensors of Group::empty()",
          .group = group,
          .takes_part = is_sums,
          .own = true};
}

/// The contender without its part in the sums, or with no other part.
Contender apart(Contender contender, bool in_sums) {
  contender.takes_part = [takes_part = std::move(contender.takes_part),
                          in_sums](const Case& one_case) {
    return is_sums(one_case) == in_sums && takes_part(one_case);
  };
  return contender;
}

}  // namespace

Benchmark loop_benchmark(const BenchOptions& options) {
  Benchmark benchmark = train_benchmark(options);
  Benchmark sums = allreduce_benchmark(options);
  benchmark.name = "loop";
  benchmark.read = [of_training = benchmark.read, of_sums = sums.read](const Measurement& run) {
    return is_sums(run.what) ? of_sums(run) : of_training(run);
  };
  benchmark.cases.push_back(sums.cases.front());
  benchmark.cases.back().name = kSums;

  auto& contenders = benchmark.contenders;
  const auto train = peer_program("loop_train"), sum = peer_program("loop_allreduce");
  if (!train || !sum) {
    fail(ErrorCode::invalid, "bench loop needs its programs (built with -DCOHORT_BUILD_BENCH=ON)");
  }
  for (Contender& one : contenders) one = apart(std::move(one), false);
  contenders.front() = own_loop(*train, *sum);
  contenders.push_back(shared_sums(*sum));
  for (Contender& one : sums.contenders) {
    if (one.name == "mpi") contenders.push_back(apart(std::move(one), true));
  }
  return benchmark;
}

}  // namespace cohort::bench
