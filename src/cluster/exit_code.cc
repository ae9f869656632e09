#include "cluster/exit_code.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "os/this_process.h"

namespace cohort::cluster {
namespace {

std::terminate_handler before = nullptr;

/// The program may hold anything at this point, so nothing is torn down: the kernel closes all.
[[noreturn]] void end_program() {
  if (const std::exception_ptr uncaught = std::current_exception()) {
    try {
      std::rethrow_exception(uncaught);
    } catch (const Error& error) {
      std::fprintf(stderr, "cohort: %s\n", error.what());
      os::flush_output();
      ::_exit(exit_code(error.code()));
    } catch (...) {
    }
  }
  if (before != nullptr) before();
  std::abort();
}

}  // namespace

void end_with_last_words() {
  const std::terminate_handler now = std::set_terminate(end_program);
  if (now != end_program) before = now;
}

}  // namespace cohort::cluster
