#pragma once

#include <span>

#include "base/fail.h"

namespace cohort {

/// The floats of a message that has them as they are. Throws Error(corrupt) where it has not
/// `count` of them.
inline std::span<const float> floats_of_message(std::span<const std::byte> message,
                                                std::size_t count) {
  if (message.size() != count * sizeof(float)) {
    fail(ErrorCode::corrupt, "a message of {} bytes arrived where {} floats were expected",
         message.size(), count);
  }
  return {reinterpret_cast<const float*>(message.data()), count};
}

}  // namespace cohort
