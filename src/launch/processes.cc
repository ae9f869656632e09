#include "launch/processes.h"

#include <signal.h>

namespace cohort {

void ForkedProcesses::kill(std::size_t index) {
  children_.signal(index, SIGKILL);
}

}  // namespace cohort
