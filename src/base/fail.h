#pragma once

#include <cohort/error.h>
#include <fmt/format.h>

#include <string>
#include <utility>

namespace cohort {

/// Throws an Error whose message is formatted by fmt.
template <class... Args>
[[noreturn]] void fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

/// Throws Error(io), or no_space where errno says so: "<doing>: <errno in words>".
[[noreturn]] void fail_errno(const std::string& doing);
[[noreturn]] void fail_errno(const std::string& doing, int error_number);

}  // namespace cohort
