#include "meet/process_settings.h"

#include <dlfcn.h>
#include <malloc.h>
#include <torch/torch.h>

#include <climits>
#include <mutex>

namespace cohort::meet {
namespace {

// OpenBLAS does not follow OpenMP's or torch's setting. It is found by name because which BLAS is
// in use is the system's choice, not the build's.
void set_blas_threads(int threads) {
  using SetThreads = void (*)(int);
  if (auto* set = reinterpret_cast<SetThreads>(::dlsym(RTLD_DEFAULT, "openblas_set_num_threads"))) {
    set(threads);
  }
}

}  // namespace

// LibTorch makes its thread pools anew in every process and counts threads per thread, neither of
// which two threads may do at once. Asking for the number fixes it for the calling thread.
void compute_with(int threads) {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  torch::set_num_threads(threads);
  torch::get_num_threads();
  set_blas_threads(threads);
}

void keep_large_blocks() {
  ::mallopt(M_MMAP_MAX, 0);
  ::mallopt(M_TRIM_THRESHOLD, INT_MAX);
  ::mallopt(M_TOP_PAD, 16 << 20);
  ::mallopt(M_ARENA_MAX, 1);
}

}  // namespace cohort::meet
