#include <cohort/kernels.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "kernel/fast_settings.h"
#include "kernel/main_door.h"
#include "kernel/run_again.h"

namespace cohort {
namespace {

void start_with_missing_settings(int threads) {
  const GetVariable get = [](const char* name) { return std::getenv(name); };
  const char* mark = get(kMark);
  auto settings = from_mark(mark == nullptr ? "" : mark);
  if (mark != nullptr && settings.empty()) return;                          // The user's word.
  const int cores = static_cast<int>(std::thread::hardware_concurrency());  // It may use.
  if (threads == 0) threads = chosen_threads(get).value_or(cores);
  // What was set once is not set again, so this ends, whatever became of the variable since.
  const auto was_set = [&, before = settings](const Setting& one) {
    return std::ranges::any_of(before, [&](const Setting& old) { return old.name == one.name; });
  };
  const auto known = settings.size();
  for (const Setting& one : missing_settings(this_machine(), threads, get)) {
    if (!was_set(one)) settings.push_back(one);
  }
  if (settings.size() > known) run_again(settings);
}

}  // namespace

void use_fast_kernels(int threads) {
  start_with_missing_settings(threads);
  pass_main_door();
}

}  // namespace cohort
