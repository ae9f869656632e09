#pragma once

#include <cohort/error.h>
#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace cohort {

/// How errors are thrown. Error itself, with the codes that callers may tell apart, is public
/// (cohort/error.h). A message is a whole sentence that names the file, key or rank it is about,
/// because it is often all that a user gets to see. What it quotes of a text that others wrote
/// goes through excerpt(): such a text may have any length and any bytes.

/// Throws an Error whose message is formatted by fmt.
template <class... Args>
[[noreturn]] void fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

/// After a system call: throws "<doing>: <errno in words>", as Error(no_space) for a full disk or
/// quota and as Error(io) for all else. Take errno first where `doing` is made by calls that may
/// change it.
[[noreturn]] void fail_errno(const std::string& doing);
[[noreturn]] void fail_errno(const std::string& doing, int error_number);

/// What an error quotes of a text that others wrote: at most about `most` bytes of it, "…" and the
/// size where there is more. Characters of UTF-8 are not cut in half, and control characters
/// become spaces, so that none can move a terminal's cursor.
std::string excerpt(std::string_view text, std::size_t most = 60);

}  // namespace cohort
