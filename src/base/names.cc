#include "base/names.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "base/fail.h"

namespace cohort {
namespace {

// Limits on what a mistake may cost: the distance takes a time of the product of two lengths, and
// names may come from a file of anybody's, a table of data with millions of columns.
constexpr std::size_t kLongestMistake = 100;  // Bytes; who wrote more meant none of our names.
constexpr std::size_t kMostNames = 1000;      // That are compared.
constexpr std::size_t kLongestList = 300;     // Bytes of all names in an error.

/// Levenshtein's: the fewest letters to insert, remove or replace that make `a` into `b`. Keeps one
/// row of the table at a time; `diagonal` is what the row above had to the left.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string nearest_name(std::string_view name, const std::vector<std::string>& known) {
  if (name.size() > kLongestMistake) return "";
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(name.size() / 2, 1) + 1;
  for (const std::string& candidate : std::span(known).first(std::min(known.size(), kMostNames))) {
    if (candidate.size() > kLongestMistake) continue;
    const std::size_t distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string one_of(const std::vector<std::string>& known) {
  std::string text;
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (i > 0) text += i + 1 == known.size() ? " or " : ", ";
    text += known[i];
  }
  return text;
}

void check_known(std::string_view what, std::string_view name,
                 const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), name) != known.end()) return;
  const std::string nearest = nearest_name(name, known);
  const std::string hint = nearest.empty() ? "" : fmt::format("did you mean \"{}\"? ", nearest);
  fail(ErrorCode::invalid, "{} \"{}\" is unknown; {}it can be {}", what, excerpt(name), hint,
       excerpt(one_of(known), kLongestList));
}

}  // namespace cohort
