#pragma once

#include <sys/types.h>

#include <span>
#include <string>

namespace cohort::programs {

/// How a rank's process ended.
struct RankEnd {
  int rank = 0;
  pid_t pid = 0;
  int status = 0;              ///< As waitpid reports it.
  bool told = false;           ///< All that ran were told to end before.
  bool by_us = false;          ///< It died of a signal that it was sent by this launcher.
  bool out_of_memory = false;  ///< The kernel killed it for want of memory.
  std::string log = {};        ///< The file with what it said of errors; may be empty.
};

bool ended_well(const RankEnd& end);

/// Of ranks that have ended, in the order in which that was noticed, the one that the others' failures
/// are likeliest to follow from; null where all ended well. When a rank dies its peers fail too,
/// moments later, and may be gone before it is (while its core is written):
///
///   1  killed by a signal from outside or by a fault of its own (SIGKILL, SIGSEGV, …)
///   2  an exit code of its own, or SIGABRT or SIGPIPE, which an error that nobody catches ends in
///   3  the same as 1, noticed after the others were told to end
///   4  138: its peer was lost, which is what happens to a healthy rank
///   5  whatever became of it after it was told to end
///
/// Of equals the first that was noticed.
const RankEnd* first_cause(std::span<const RankEnd> ends);

/// "rank 1 (pid 4711) was killed by SIGSEGV; log: …".
std::string describe(const RankEnd& end);

/// Its own exit code, or 128 and the signal that killed it.
int exit_code(const RankEnd& end);

}  // namespace cohort::programs
