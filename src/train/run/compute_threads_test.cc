// How many threads a worker gets, by the numbers alone.

#include "train/run/compute_threads.h"

#include <gtest/gtest.h>

namespace cohort::training {
namespace {

TEST(ThreadRule, CoresAreDividedByTheWorkersWhereThereIsEnoughToDo) {
  EXPECT_EQ(threads_for({.cores = 8, .local_workers = 1, .part_work = 1e9}), 8);
  EXPECT_EQ(threads_for({.cores = 8, .local_workers = 3, .part_work = 1e9}), 2);
  EXPECT_EQ(threads_for({.cores = 2, .local_workers = 4, .part_work = 1e9}), 1);
  EXPECT_EQ(threads_for({.cores = 8, .local_workers = 2, .part_work = 1e300}), 4);
}

TEST(ThreadRule, ASmallModelGetsFewerThreadsThanCores) {
  EXPECT_EQ(threads_for({.cores = 8, .local_workers = 1, .part_work = 0}), 1);
  EXPECT_EQ(threads_for({.cores = 8, .local_workers = 1, .part_work = 9e6}), 1);
  EXPECT_EQ(threads_for({.cores = 8, .local_workers = 1, .part_work = 12e6}), 2);
}

TEST(ThreadRule, WhatCannotBeSeenIntoGetsItsShare) {
  EXPECT_EQ(threads_for({.cores = 8, .local_workers = 2}), 4);
}

}  // namespace
}  // namespace cohort::training
