#include <cohort/kernels.h>

#include <cstdlib>

#include "kernel/fast_settings.h"
#include "kernel/run_again.h"

namespace cohort {

void use_fast_kernels(int threads) {
  const GetVariable get = [](const char* name) { return std::getenv(name); };
  if (get(kMark) != nullptr) return;
  const auto missing =
      missing_settings(this_machine(), threads > 0 ? threads : default_threads(get), get);
  if (!missing.empty()) run_again(missing);
}

}  // namespace cohort
