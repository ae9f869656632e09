#pragma once

#include <cohort/error.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <vector>

#include "base/deadline.h"
#include "base/unique_fd.h"

namespace cohort::cluster {

/// For tests of this room: a deadline that only what hangs meets, and errors as values,
/// and few descriptors.

inline Deadline soon() {
  return Deadline::in_seconds(60);
}

/// What `action` throws. The test fails where it throws nothing.
template <class Action>
Error error_of(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no Error was thrown";
  return Error(ErrorCode::cancelled, "");
}

/// While this lives the process can have so many descriptors more.
class DescriptorsLeft {
 public:
  explicit DescriptorsLeft(int count) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    std::vector<UniqueFd> next;  // The lowest numbers that are free.
    for (int i = 0; i <= count; ++i) next.emplace_back(::dup(STDERR_FILENO));
    const rlimit narrow{.rlim_cur = static_cast<rlim_t>(next.back().get()),
                        .rlim_max = before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &narrow), 0);
  }
  ~DescriptorsLeft() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  DescriptorsLeft(const DescriptorsLeft&) = delete;
  DescriptorsLeft& operator=(const DescriptorsLeft&) = delete;

 private:
  rlimit before_{};
};

}  // namespace cohort::cluster
