#include "kernel/program_start.h"

#include <cohort/kernels.h>

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
  const int cores = static_cast<int>(std::thread::hardware_concurrency());  // It may use.
  if (threads == 0) threads = chosen_threads(get).value_or(cores);
  const auto settings = settings_to_start_with(this_machine(), threads, get);
  if (!settings.empty()) run_again(settings);
}

}  // namespace

void run_again(const std::vector<Setting>& settings) {
  try {
    os::exec_this_program(os::command_line(), os::environment_with(as_variables(settings)));
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
