#pragma once

#include <cstddef>
#include <string>

#include "bench/results.h"

namespace cohort {

/// "57.2 ms", "13.6 k/s", "251 MB": three digits that count.
std::string format_value(double value, Unit unit);

/// "4 bytes", "64 KiB", "16 MiB", of a size that is a whole number of them.
std::string size_name(std::size_t bytes);

/// A paragraph per metric, a line per contender: median, lowest and highest of the rounds, and how
/// many times better `reference` is than it.
std::string format_table(const Results& results, const std::string& reference);

}  // namespace cohort
