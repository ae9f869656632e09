#pragma once

// For tests in which workers and servers are processes of their own and are killed.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string>

#include "cluster/socket_store.h"

namespace cohort::server {

/// A process that has used gRPC must not fork, so every scenario runs in a fresh process, which is
/// what a death test of the style "threadsafe" is: it starts this program anew. There `scenario`
/// forks first and uses gRPC then. What it throws is its failure.
inline void run_in_new_process(const std::function<void()>& scenario) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        try {
          scenario();
        } catch (const std::exception& error) {
          std::fprintf(stderr, "failed: %s\n", error.what());
          ::_exit(1);
        }
        ::_exit(0);
      },
      testing::ExitedWithCode(0), "");
}

inline void require(bool true_if_right, const std::string& what) {
  if (!true_if_right) throw std::runtime_error(what);
}

/// Runs `body` with the run's store in a child, which is `self` and ends without the program's exit
/// handlers.
inline pid_t start_process(const cluster::StoreServer& store, const cluster::Member& self,
                           const std::function<void(cluster::Store&)>& body) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  try {
    cluster::SocketStore mine(store.endpoint(), store.pass(),
                              Deadline::in(std::chrono::seconds(30)), self);
    body(mine);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "child failed: %s\n", error.what());
    ::_exit(1);
  }
  ::_exit(0);
}

/// How it ended: a signal, or 0.
inline int signal_that_ended(pid_t pid) {
  int status = 0;
  require(::waitpid(pid, &status, 0) == pid, "the child cannot be waited for");
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

}  // namespace cohort::server
