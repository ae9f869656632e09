#pragma once

namespace cohort {

/// Call at the very top of main, before anything else: lets the program compute with the fastest
/// kernels this machine has.
///
/// Libraries that LibTorch brings choose how to compute when they are loaded, which is before main,
/// and some choose badly: OpenBLAS does not know CPUs that are newer than itself, and OpenMP's idle
/// threads spin on the cores that BLAS computes on. What helps are variables of the environment, so
/// where one is missing this starts the program anew with it, once, in the same process: same
/// words, file, folder, standard input and process id. Main is entered a second time; the first
/// time ends here. What the user has set is left alone, and where the program cannot be started
/// anew, it goes on as it is. docs/performance.md has the variables, for those who rather set them.
///
/// `threads` is how many the program, or each of its workers, computes with; 0: one per core, or
/// OMP_NUM_THREADS. With 1 there is less to set, and more programs need not be started anew.
///
/// It is also where cohort::start() lets a copy of the program become the launcher of a run
/// (cohort/run.h): main gets no further in that copy.
///
/// COHORT_KERNELS=off in the environment forbids to start the program anew.
void use_fast_kernels(int threads = 0);

}  // namespace cohort
