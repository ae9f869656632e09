#pragma once

#include <cstdio>

namespace cohort {

/// What this process has printed leaves its buffers: before a fork, or the child would print it
/// once more, and before _exit(), which forgets it. Other streams are left alone: fflush(nullptr)
/// would wait for a thread that reads from one, perhaps for ever.
inline void flush_output() {
  std::fflush(stdout);
  std::fflush(stderr);
}

}  // namespace cohort
