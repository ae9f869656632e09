#include "kernel/program_start.h"

#include <cohort/kernels.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <thread>

#include "base/fail.h"
#include "os/run_program.h"
#include "os/this_process.h"

namespace cohort::kernel {
namespace {

// Constant-initialised: the door is set by initialisers of other files, in any order.
constinit std::atomic<void (*)()> door = nullptr;
constinit std::atomic<bool> passed = false;

void start_with_missing_settings(int threads) {
  const os::GetVariable get = [](const char* name) { return std::getenv(name); };
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

void run_again(const std::vector<Setting>& settings) {
  std::vector<std::string> changed;
  for (const Setting& one : settings) changed.push_back(one.name + "=" + one.value);
  changed.push_back(fmt::format("{}={}", kMark, to_mark(settings)));
  try {
    os::exec_this_program(os::command_line(), os::environment_with(changed));
  } catch (const Error&) {
    // No /proc: the program goes on as it is.
  }
}

void set_main_door(void (*enter)()) {
  door = enter;
}

bool main_has_door() {
  return passed;
}

void pass_main_door() {
  if (auto* enter = door.load()) enter();
  passed = true;
}

}  // namespace cohort::kernel

// Public (cohort/kernels.h).
void cohort::use_fast_kernels(int threads) {
  kernel::start_with_missing_settings(threads);
  kernel::pass_main_door();
}
