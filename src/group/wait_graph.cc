#include "group/wait_graph.h"

#include <algorithm>

#include "base/json.h"

namespace cohort::group {
namespace {

/// The ranks whose call, of those that `rank` waits for, was not made. A rank without a status has
/// not said that it waits: it may still make it, and does not count.
std::vector<int> owed_by(const std::vector<std::optional<WaitStatus>>& by_rank, int rank) {
  const WaitStatus& status = *by_rank[static_cast<std::size_t>(rank)];
  std::vector<int> owing;
  for (int other = 0; other < static_cast<int>(by_rank.size()); ++other) {
    const auto& theirs = by_rank[static_cast<std::size_t>(other)];
    if (other == rank || !theirs || (status.peer >= 0 && status.peer != other)) continue;
    const auto self = static_cast<std::size_t>(rank);
    const std::uint64_t made = status.waits_for == WaitStatus::For::collective ? theirs->collectives
                               : status.waits_for == WaitStatus::For::receive
                                   ? theirs->receives[self]
                                   : theirs->sends[self];
    if (made < status.number) owing.push_back(other);
  }
  return owing;
}

}  // namespace

std::string encode(const WaitStatus& status) {
  return nlohmann::json{{"collectives", status.collectives},
                        {"sends", status.sends},
                        {"receives", status.receives},
                        {"for", static_cast<int>(status.waits_for)},
                        {"peer", status.peer},
                        {"number", status.number},
                        {"call", status.call}}
      .dump();
}

std::optional<WaitStatus> status_from(const std::string& text, int world) {
  try {
    const auto json = parse_json(text);
    WaitStatus status{.collectives = json.at("collectives"),
                      .sends = json.at("sends"),
                      .receives = json.at("receives"),
                      .peer = json.at("peer"),
                      .number = json.at("number"),
                      .call = json.at("call")};
    const int waits_for = json.at("for");
    const auto size = static_cast<std::size_t>(world);
    if (status.sends.size() != size || status.receives.size() != size) return std::nullopt;
    if (status.peer < -1 || status.peer >= world || waits_for < 0 || waits_for > 2) {
      return std::nullopt;
    }
    status.waits_for = static_cast<WaitStatus::For>(waits_for);
    return status;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

std::vector<int> stuck_ranks(const std::vector<std::optional<WaitStatus>>& by_rank) {
  const int world = static_cast<int>(by_rank.size());
  std::vector<int> stuck;
  for (int rank = 0; rank < world; ++rank) {
    if (by_rank[static_cast<std::size_t>(rank)]) stuck.push_back(rank);
  }
  const auto may_go_on = [&](int rank) {
    return std::ranges::none_of(owed_by(by_rank, rank), [&](int owing) {
      return std::ranges::find(stuck, owing) != stuck.end();
    });
  };
  while (std::erase_if(stuck, may_go_on) > 0) {
  }
  return stuck;
}

}  // namespace cohort::group
