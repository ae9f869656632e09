#pragma once

#include <optional>
#include <string_view>

namespace cohort {

/// `text` without the spaces and tabs around it.
std::string_view trimmed(std::string_view text);

/// The number that `text`, spaces around it aside, is written as, if a float can be that large; the
/// decimal point is a point whatever the locale.
std::optional<double> parse_number(std::string_view text);

}  // namespace cohort
