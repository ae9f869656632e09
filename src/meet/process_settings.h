#pragma once

namespace cohort::meet {

/// The BLAS, OpenMP and LibTorch threads that the calling thread computes with.
void compute_with(int threads);

/// Makes malloc keep and reuse large blocks. By default it returns each to the system and gets
/// fresh, zeroed pages for the next, which costs a training step up to a third of its time.
void keep_large_blocks();

}  // namespace cohort::meet
