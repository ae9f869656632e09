#include <cohort/kernels.h>

#include <cstdlib>
#include <thread>

#include "kernel/fast_settings.h"
#include "kernel/run_again.h"

namespace cohort {

void use_fast_kernels(int threads) {
  const GetVariable get = [](const char* name) { return std::getenv(name); };
  if (get(kMark) != nullptr) return;
  const int cores = static_cast<int>(std::thread::hardware_concurrency());  // It may use.
  if (threads == 0) threads = chosen_threads(get).value_or(cores);
  const auto missing = missing_settings(this_machine(), threads, get);
  if (!missing.empty()) run_again(missing);
}

}  // namespace cohort
