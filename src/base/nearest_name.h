#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cohort {

/// The known name closest to `name` by edit distance, or "" where none is close enough to be meant.
std::string nearest_name(std::string_view name, const std::vector<std::string>& known);

/// `known` joined for an error message: "a, b or c".
std::string one_of(const std::vector<std::string>& known);

/// Throws Error(invalid) unless `name` is known: "<what> "<name>" is unknown; did you mean "x"? It
/// can be a, b or c."
void check_known(std::string_view what, std::string_view name,
                 const std::vector<std::string>& known);

}  // namespace cohort
