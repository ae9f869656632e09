#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace cohort {

/// The whole number that all of `text` is written as, in decimal; nothing where it is none or not
/// from `least` to `most`.
std::optional<std::int64_t> parse_integer(
    std::string_view text, std::int64_t least = std::numeric_limits<std::int64_t>::min(),
    std::int64_t most = std::numeric_limits<std::int64_t>::max());

}  // namespace cohort
