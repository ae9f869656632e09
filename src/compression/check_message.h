#pragma once

#include <cstddef>
#include <string_view>

namespace cohort {

/// Throws Error(invalid): the caller's vector is not as long as the codec's shape says.
void check_count(std::string_view kind, std::size_t count, std::size_t expected);

/// Throws Error(corrupt) for a message of a length its codec never makes.
void check_length(std::string_view kind, std::size_t bytes, std::size_t expected);

}  // namespace cohort
