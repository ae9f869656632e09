#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cohort::group {

/// What a rank that waits has called so far, and which call of whom it waits for. Ranks tell each
/// other through the store, each once for a wait that takes long.
///
/// The calls of a group are counted: collectives, and for every other rank the sends to it and the
/// receives from it. All counts only grow. A wait is for a *call that has not been made*: for the
/// n-th collective of all others, for the m-th receive of one rank from this one, or for its m-th
/// send to this one.
struct WaitStatus {
  enum class For : std::uint8_t { collective, receive, send };

  std::uint64_t collectives = 0;        ///< Called by this rank.
  std::vector<std::uint64_t> sends;     ///< To every rank.
  std::vector<std::uint64_t> receives;  ///< From every rank.
  For waits_for = For::collective;
  int peer = -1;             ///< Whose call; -1: that of all others.
  std::uint64_t number = 0;  ///< Its number.
  std::string call;          ///< In words.

  bool operator==(const WaitStatus&) const = default;
};

std::string encode(const WaitStatus& status);
/// Nothing where the text is no status of a group of this size: nobody's word ends a run.
std::optional<WaitStatus> status_from(const std::string& text, int world);

/// The ranks that wait for each other and will not stop by themselves, as far as the statuses tell;
/// empty: there may be none. No status is of a rank that has not said that it waits.
///
/// A rank is stuck when it waits for a call that, by the status of the rank that owes it, was not
/// made, and that rank is stuck too. That is right however old the statuses are: let r be the first
/// of the stuck ranks that went on after its status. It went on because a rank s that is stuck as
/// well made the call it waited for; not before the status of s, which says that it had not, and not
/// after it, since s would have gone on before r. So nobody went on.
std::vector<int> stuck_ranks(const std::vector<std::optional<WaitStatus>>& by_rank);

}  // namespace cohort::group
