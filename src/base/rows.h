#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/nearest_name.h"

namespace cohort {

/// Tables of things that a job file names: a row each, with a `name`. Whoever needs the names, or
/// what a row says, reads the table, so that one more thing is one more row.

template <class Rows>
std::vector<std::string> names_of(Rows&& rows) {
  std::vector<std::string> names;
  for (const auto& row : rows) {
    if (std::ranges::find(names, row.name) == names.end()) names.emplace_back(row.name);
  }
  return names;
}

/// The first row of that name. Throws Error(invalid) with the nearest known one; `what` is the kind
/// of thing.
template <class Rows>
const auto& row_named(std::string_view what, std::string_view name, const Rows& rows) {
  const auto found = std::ranges::find_if(
      rows, [&](const auto& row) { return std::string_view(row.name) == name; });
  if (found == std::ranges::end(rows)) check_known(what, name, names_of(rows));
  return *found;
}

}  // namespace cohort
