#pragma once

#include <spdlog/spdlog.h>

#include <string>

namespace cohort {

/// Logging of a task, on spdlog's default logger: to standard error unless told otherwise. For what
/// a user should know though nothing has failed; what has failed is thrown (base/fail.h). Any
/// thread may log.
template <class... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  spdlog::info(format, std::forward<Args>(args)...);
}
template <class... Args>
void log_warn(fmt::format_string<Args...> format, Args&&... args) {
  spdlog::warn(format, std::forward<Args>(args)...);
}
template <class... Args>
void log_error(fmt::format_string<Args...> format, Args&&... args) {
  spdlog::error(format, std::forward<Args>(args)...);
}

}  // namespace cohort
