#pragma once

#include <cohort/data_parallel.h>
#include <cohort/distributed_sampler.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "group/group_test_support.h"
#include "parallel/group_state.h"

namespace cohort::parallel {

/// For tests: ranks of one program that are threads, each with its Group.

using RankBody = std::function<void(const Group&)>;

/// Runs `body` on a thread for every rank, on that engine of group::test_engines(). What a rank throws
/// fails the test.
inline void run_ranks(const std::string& engine, int world, const RankBody& body) {
  for (const group::TestEngine& one : group::test_engines()) {
    if (one.name != engine) continue;
    group::MeetingPlace place = one.place(world);
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < world; ++rank) {
      threads.emplace_back([&, rank] {
        try {
          body(GroupAccess::make(
              std::make_shared<group::Communicator>(place.membership(rank), group::quick_options()),
              nullptr));
        } catch (const std::exception& error) {
          ADD_FAILURE() << engine << ", rank " << rank << " of " << world << ": " << error.what();
        }
      });
    }
    return;
  }
  FAIL() << "there is no engine " << engine;
}

inline void run_ranks(int world, const RankBody& body) {
  run_ranks("shm", world, body);
}

/// What every rank has come to, by rank.
template <class Result>
std::vector<Result> results_of_ranks(int world, const std::function<Result(const Group&)>& body) {
  std::vector<Result> results(static_cast<std::size_t>(world));
  run_ranks(world, [&](const Group& group) {
    results[static_cast<std::size_t>(group.rank())] = body(group);
  });
  return results;
}

/// The Error that `action` ends in.
template <class Action>
Error error_of(Action&& action) {
  return group::failure_of(std::forward<Action>(action));
}

inline double largest_difference(const torch::Tensor& one, const torch::Tensor& other) {
  return (one.to(torch::kFloat64) - other.to(torch::kFloat64)).abs().max().item<double>();
}

}  // namespace cohort::parallel
