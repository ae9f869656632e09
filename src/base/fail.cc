#include "base/fail.h"

#include <cerrno>
#include <cstring>

namespace cohort {

void fail_errno(const std::string& doing) {
  fail_errno(doing, errno);
}

void fail_errno(const std::string& doing, int error_number) {
  const bool full = error_number == ENOSPC || error_number == EDQUOT;
  throw Error(full ? ErrorCode::no_space : ErrorCode::io,
              doing + ": " + std::strerror(error_number));
}

}  // namespace cohort
