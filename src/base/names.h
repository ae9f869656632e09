#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace cohort {

/// Names that users write: of keys, kinds, columns, files. Each kind of thing that a job file can
/// name has a table with a row for every one of its kind, and the row has a member `name`. Whoever
/// needs the names, or what a row says, reads the table, so that one more thing is one more row.
/// Where a name is in no table, the error says which one was probably meant.

/// The known name closest to `name` by edit distance, or "" where none is close enough to be meant:
/// at most half of the letters may be wrong. Looks at the first thousand names only.
std::string nearest_name(std::string_view name, const std::vector<std::string>& known);

/// `known` joined for an error message: "a, b or c".
std::string one_of(const std::vector<std::string>& known);

/// Throws Error(invalid) unless `name` is known: "<what> "<name>" is unknown; did you mean "x"? it
/// can be a, b or c"
void check_known(std::string_view what, std::string_view name,
                 const std::vector<std::string>& known);

/// The names of a table in its order, each once: several rows may have the same name.
template <class Rows>
std::vector<std::string> names_of(Rows&& rows) {
  std::vector<std::string> names;
  for (const auto& row : rows) {
    if (std::ranges::find(names, row.name) == names.end()) names.emplace_back(row.name);
  }
  return names;
}

/// The first row of that name; refers into `rows`. Throws Error(invalid) with the nearest known
/// name; `what` is the kind of thing: "optimizer kind".
template <class Rows>
const auto& row_named(std::string_view what, std::string_view name, const Rows& rows) {
  const auto found = std::ranges::find_if(
      rows, [&](const auto& row) { return std::string_view(row.name) == name; });
  if (found == std::ranges::end(rows)) check_known(what, name, names_of(rows));
  return *found;
}

}  // namespace cohort
