#include "compression/check_message.h"

#include "base/fail.h"

namespace cohort {

void check_count(std::string_view kind, std::size_t count, std::size_t expected) {
  if (count == expected) return;
  fail(ErrorCode::invalid, "a {} codec made for vectors of {} floats was given one of {}", kind,
       expected, count);
}

void check_length(std::string_view kind, std::size_t bytes, std::size_t expected) {
  if (bytes == expected) return;
  fail(ErrorCode::corrupt, "a {} message has {} bytes; this vector's would have {}", kind, bytes,
       expected);
}

}  // namespace cohort
