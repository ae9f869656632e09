#pragma once

#include <cohort/error.h>
#include <gtest/gtest.h>

#include "base/deadline.h"

namespace cohort::cluster {

/// For tests of this room: a deadline that only what hangs meets, and errors as values.

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

}  // namespace cohort::cluster
