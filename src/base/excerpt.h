#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cohort {

/// What an error says of a text that others wrote: at most about `most` bytes of it, "…" and the
/// size where there is more, and no character that would move a terminal's cursor.
std::string excerpt(std::string_view text, std::size_t most = 60);

}  // namespace cohort
