#include "meet/process_settings.h"

#include <dlfcn.h>
#include <malloc.h>
#include <sys/mman.h>
#include <torch/torch.h>

#include <climits>
#include <cstdint>
#include <cstdlib>
#include <fstream>
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

constexpr std::uintptr_t kHugePage = 2 << 20;
constexpr std::size_t kMostRoom = std::size_t{1} << 30;
constexpr std::size_t kLeastRoom = 64 << 20;

/// Addresses that nobody touches cost nothing, but where the system promises no more memory than it has.
bool every_promise_counts() {
  std::ifstream policy("/proc/sys/vm/overcommit_memory");
  return policy.get() == '2';
}

// malloc's heap is grown once, by room that nobody touches, so that it costs addresses and no memory;
// what is allocated there later comes in huge pages. glibc.malloc.hugetlb=1 does the same, but only
// for whoever was started with it.
void grow_heap_in_huge_pages() {
  if (every_promise_counts()) return;
  for (std::size_t room = kMostRoom; room >= kLeastRoom; room /= 2) {
    void* const block = std::malloc(room);
    if (block == nullptr) continue;  // A limit of the process, or of the system.
    const auto begin = (reinterpret_cast<std::uintptr_t>(block) + kHugePage - 1) & ~(kHugePage - 1);
    const auto end = (reinterpret_cast<std::uintptr_t>(block) + room) & ~(kHugePage - 1);
    ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
    std::free(block);
    return;
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
  grow_heap_in_huge_pages();
}

}  // namespace cohort::meet
