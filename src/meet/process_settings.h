#pragma once

namespace cohort::meet {

/// The BLAS, OpenMP and LibTorch threads that the calling thread computes with.
void compute_with(int threads);

/// Makes malloc keep and reuse large blocks. By default it returns each to the system and gets
/// fresh, zeroed pages for the next, which costs a training step up to a third of its time. The heap's
/// next gigabyte is of huge pages, where the system gives them to who asks and
/// does not count every promise of memory (3 to 7 % of a step).
void keep_large_blocks();

}  // namespace cohort::meet
