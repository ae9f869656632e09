#include "cluster/view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "base/excerpt.h"
#include "base/fail.h"

namespace cohort {

std::optional<int> View::rank_of(int worker) const {
  const auto place = std::ranges::find(workers, worker);
  if (place == workers.end()) return std::nullopt;
  return static_cast<int>(place - workers.begin());
}

std::string to_text(const View& view) {
  return fmt::format("{} {} {}", view.epoch, view.closing ? "close" : "train",
                     fmt::join(view.workers, " "));
}

View view_from(const std::string& text) {
  std::istringstream words(text);
  View view;
  std::string purpose;
  if (!(words >> view.epoch >> purpose) || (purpose != "close" && purpose != "train")) {
    fail(ErrorCode::corrupt, "\"{}\" does not describe a group of workers", excerpt(text));
  }
  view.closing = purpose == "close";
  for (int worker = 0; words >> worker;) view.workers.push_back(worker);
  if (!words.eof())
    fail(ErrorCode::corrupt, "\"{}\" has a worker that is no number", excerpt(text));
  return view;
}

std::string view_key(std::int64_t epoch) {
  return fmt::format("view/{}", epoch);
}

}  // namespace cohort
