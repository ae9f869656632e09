// The checker that proves schedules by running them on symbols, and that it finds what is wrong: a
// circle of waiting, messages that do not match, steps that break the rules of schedule.h.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "collective/schedule_check_test_support.h"

namespace cohort::collective {
namespace {

/// What a rank has in one cell.
struct Value {
  std::string sum;
  std::vector<int> parts;
};

bool overlap(Segment a, Segment b) {
  return std::max(a.begin, b.begin) < std::min(a.end, b.end);
}

/// One action of the step a rank is in.
struct Pending {
  Action action;
  bool done = false;
  std::vector<Value> received = {};  ///< By cell of the segment, from its first.
};

struct RankState {
  std::size_t step = 0;  ///< The next to start, once `pending` is complete.
  std::vector<Pending> pending;
  std::vector<Value> cells;
  std::vector<bool> heard_of;
};

class Checker {
 public:
  Checker(const std::vector<Schedule>& schedules, std::size_t count) : schedules_(schedules) {
    std::set<std::size_t> cuts = {0, count};
    for (const Schedule& schedule : schedules) {
      for (const Step& step : schedule.steps) {
        for (const Action& action : step.actions) {
          cuts.insert(action.segment.begin);
          cuts.insert(action.segment.end);
        }
      }
    }
    cuts_.assign(cuts.begin(), cuts.end());
    ranks_.resize(schedules.size());
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      Value own{std::to_string(rank), std::vector<int>(ranks_.size())};
      own.parts[rank] = 1;
      ranks_[rank].cells.assign(cuts_.size() - 1, own);
      ranks_[rank].heard_of.resize(ranks_.size());
      ranks_[rank].heard_of[rank] = true;
    }
  }

  ScheduleOutcome run() {
    bool progress = true;
    while (progress && problem_.empty()) {
      progress = false;
      for (int rank = 0; rank < world(); ++rank) progress |= advance(rank);
      for (int rank = 0; rank < world(); ++rank) progress |= deliver_from(rank);
    }
    if (problem_.empty()) find_waiting();
    return outcome();
  }

 private:
  int world() const { return static_cast<int>(ranks_.size()); }

  /// Finishes and starts steps of `rank` as far as it can alone.
  bool advance(int rank) {
    RankState& state = ranks_[rank];
    const auto& steps = schedules_[rank].steps;
    const auto done = [](const Pending& pending) { return pending.done; };
    bool progress = false;
    while (std::all_of(state.pending.begin(), state.pending.end(), done)) {
      apply(rank);
      state.pending.clear();
      if (state.step == steps.size()) break;
      check_rules(rank, steps[state.step]);
      for (const Action& action : steps[state.step].actions) state.pending.push_back({action});
      ++state.step;
      progress = true;
    }
    return progress;
  }

  /// Hands over every message of `rank` whose receive has started.
  bool deliver_from(int rank) {
    bool progress = false;
    for (Pending& send : ranks_[rank].pending) {
      if (send.done || send.action.kind != ActionKind::send) continue;
      RankState& peer = ranks_[send.action.peer];
      for (Pending& receive : peer.pending) {
        if (receive.done || receive.action.kind == ActionKind::send) continue;
        if (receive.action.peer != rank) continue;
        if (receive.action.segment != send.action.segment) {
          report("rank {} sends [{}, {}) to rank {}, which expects [{}, {})", rank,
                 send.action.segment.begin, send.action.segment.end, send.action.peer,
                 receive.action.segment.begin, receive.action.segment.end);
        }
        const auto [first, last] = cells_of(send.action.segment);
        receive.received.assign(ranks_[rank].cells.begin() + first,
                                ranks_[rank].cells.begin() + last);
        for (int other = 0; other < world(); ++other) {
          if (ranks_[rank].heard_of[other]) peer.heard_of[other] = true;
        }
        send.done = receive.done = progress = true;
        break;
      }
    }
    return progress;
  }

  /// Writes what the finished step of `rank` received.
  void apply(int rank) {
    RankState& state = ranks_[rank];
    for (const Pending& pending : state.pending) {
      if (pending.action.kind != ActionKind::receive_copy) continue;
      std::copy(pending.received.begin(), pending.received.end(),
                state.cells.begin() + cells_of(pending.action.segment).first);
    }
    std::vector<const Pending*> reductions;
    for (const Pending& pending : state.pending) {
      if (pending.action.kind == ActionKind::receive_reduce) reductions.push_back(&pending);
    }
    if (reductions.empty()) return;
    const auto own_place =
        std::find_if(reductions.begin(), reductions.end(),
                     [&](const Pending* reduction) { return reduction->action.peer > rank; });
    const auto [first, last] = cells_of(reductions.front()->action.segment);
    for (int cell = first; cell < last; ++cell) {
      std::vector<Value> terms;
      for (const Pending* reduction : reductions) {
        terms.push_back(reduction->received[cell - first]);
      }
      terms.insert(terms.begin() + (own_place - reductions.begin()), state.cells[cell]);
      state.cells[cell] = std::accumulate(terms.begin() + 1, terms.end(), terms.front(), plus);
    }
  }

  static Value plus(const Value& a, const Value& b) {
    Value sum{fmt::format("({}+{})", a.sum, b.sum), a.parts};
    for (std::size_t part = 0; part < b.parts.size(); ++part) sum.parts[part] += b.parts[part];
    return sum;
  }

  void check_rules(int rank, const Step& step) {
    std::optional<Action> last_reduction;
    std::set<std::pair<bool, int>> seen;
    for (const Action& action : step.actions) {
      const bool sends = action.kind == ActionKind::send;
      if (action.peer < 0 || action.peer >= world() || action.peer == rank) {
        report("rank {} has no peer {}", rank, action.peer);
      }
      if (!seen.insert({sends, action.peer}).second) {
        report("rank {} has two messages of one step with rank {}", rank, action.peer);
      }
      if (action.kind != ActionKind::receive_reduce) continue;
      if (last_reduction && last_reduction->peer >= action.peer) {
        report("rank {} does not list its reductions by peer", rank);
      }
      if (last_reduction && last_reduction->segment != action.segment) {
        report("rank {} reduces into two segments in one step", rank);
      }
      last_reduction = action;
    }
    check_races(rank, step);
  }

  void check_races(int rank, const Step& step) {
    for (const Action& written : step.actions) {
      if (written.kind == ActionKind::send) continue;
      for (const Action& other : step.actions) {
        if (&written == &other || !overlap(written.segment, other.segment)) continue;
        if (written.kind == ActionKind::receive_reduce && other.kind == written.kind) continue;
        report("rank {} writes [{}, {}) while that is in use", rank, written.segment.begin,
               written.segment.end);
      }
    }
  }

  void find_waiting() {
    for (int rank = 0; rank < world(); ++rank) {
      for (const Pending& pending : ranks_[rank].pending) {
        if (!pending.done) {
          report("rank {} waits for rank {} for ever in step {}", rank, pending.action.peer,
                 ranks_[rank].step);
        }
      }
    }
  }

  std::pair<int, int> cells_of(Segment segment) const {
    const auto index = [&](std::size_t cut) {
      return static_cast<int>(std::lower_bound(cuts_.begin(), cuts_.end(), cut) - cuts_.begin());
    };
    return {index(segment.begin), index(segment.end)};
  }

  template <class... Args>
  void report(fmt::format_string<Args...> format, Args&&... args) {
    if (problem_.empty()) problem_ = fmt::format(format, std::forward<Args>(args)...);
  }

  ScheduleOutcome outcome() const {
    ScheduleOutcome result{problem_, cuts_, {}, {}, {}};
    for (const RankState& state : ranks_) {
      auto& sums = result.sums.emplace_back();
      auto& parts = result.parts.emplace_back();
      for (const Value& value : state.cells) {
        sums.push_back(value.sum);
        parts.push_back(value.parts);
      }
      result.heard_of.push_back(state.heard_of);
    }
    return result;
  }

  const std::vector<Schedule>& schedules_;
  std::vector<std::size_t> cuts_;
  std::vector<RankState> ranks_;
  std::string problem_;
};

}  // namespace

ScheduleOutcome check_schedules(const std::vector<Schedule>& schedules, std::size_t count) {
  return Checker(schedules, count).run();
}

namespace {

// A check that finds nothing proves nothing, so here it must find what is wrong.

using testing::HasSubstr;
using enum ActionKind;

TEST(ScheduleCheck, FollowsPartsIntoASum) {
  const auto outcome =
      check_schedules({{"", {{{{receive_reduce, 1, {0, 2}}, {receive_reduce, 2, {0, 2}}}}}},
                       {"", {{{{send, 0, {0, 2}}}}}},
                       {"", {{{{send, 0, {0, 2}}}}}}},
                      3);
  EXPECT_EQ(outcome.problem, "");
  EXPECT_THAT(outcome.cuts, testing::ElementsAre(0, 2, 3));
  EXPECT_THAT(outcome.sums[0], testing::ElementsAre("((0+1)+2)", "0"));
  EXPECT_THAT(outcome.parts[0][0], testing::ElementsAre(1, 1, 1));
  EXPECT_THAT(outcome.heard_of[0], testing::ElementsAre(true, true, true));
  EXPECT_THAT(outcome.heard_of[1], testing::ElementsAre(false, true, false));
}

TEST(ScheduleCheck, FindsACircleOfWaiting) {
  const Step send_to_0{{{send, 0, {0, 1}}}}, send_to_1{{{send, 1, {0, 1}}}};
  const Step from_0{{{receive_copy, 0, {0, 1}}}}, from_1{{{receive_copy, 1, {0, 1}}}};
  const auto receive_first =
      check_schedules({{"", {from_1, send_to_1}}, {"", {from_0, send_to_0}}}, 1);
  EXPECT_THAT(receive_first.problem, HasSubstr("for ever"));
  const auto send_first =
      check_schedules({{"", {send_to_1, from_1}}, {"", {send_to_0, from_0}}}, 1);
  EXPECT_THAT(send_first.problem, HasSubstr("for ever"));
}

TEST(ScheduleCheck, FindsMessagesThatDoNotMatch) {
  const Schedule sends{"", {{{{send, 1, {0, 1}}}}}};
  EXPECT_THAT(check_schedules({sends, {"", {{{{receive_copy, 0, {0, 2}}}}}}}, 2).problem,
              HasSubstr("which expects [0, 2)"));
  EXPECT_THAT(check_schedules({sends, {"", {}}}, 2).problem, HasSubstr("for ever"));
  EXPECT_THAT(check_schedules({{"", {{{{send, 0, {0, 1}}}}}}}, 1).problem, HasSubstr("no peer 0"));
}

TEST(ScheduleCheck, FindsBrokenRulesOfAStep) {
  const auto problem_of = [](std::vector<Action> actions) {
    return check_schedules({{"", {{std::move(actions)}}}, {"", {}}, {"", {}}}, 2).problem;
  };
  EXPECT_THAT(problem_of({{send, 1, {0, 1}}, {receive_copy, 1, {0, 2}}}), HasSubstr("in use"));
  EXPECT_THAT(problem_of({{receive_copy, 1, {0, 1}}, {receive_copy, 2, {0, 1}}}),
              HasSubstr("in use"));
  EXPECT_THAT(problem_of({{send, 1, {0, 1}}, {send, 1, {1, 2}}}), HasSubstr("two messages"));
  EXPECT_THAT(problem_of({{receive_reduce, 2, {0, 1}}, {receive_reduce, 1, {0, 1}}}),
              HasSubstr("by peer"));
  EXPECT_THAT(problem_of({{receive_reduce, 1, {0, 1}}, {receive_reduce, 2, {1, 2}}}),
              HasSubstr("two segments"));
}

}  // namespace
}  // namespace cohort::collective
