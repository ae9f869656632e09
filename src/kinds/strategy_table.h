#pragma once

#include <cohort/job.h>

#include <string>
#include <string_view>
#include <vector>

namespace cohort::kinds {

/// The ways of training together that there are: one row for each, the only place where it is
/// written down which there are and how each behaves. Rows are data: they know nothing of how a
/// strategy works, and everything that depends on the kind (which checks a job needs, whether the
/// launcher stops all at a loss, what `cohort chaos` may demand of a run, the tables of
/// docs/job.md) asks a trait, never a name. So a new way is a new row and its maker
/// (strategy/make_strategy.cc).

/// How a way of training together behaves, for all who must know it and need not know how it is
/// done: the launcher, the loop, the checks of a job, the tests by faults.
struct StrategyTraits {
  /// All workers make every step together and see the same outcome of it.
  bool lockstep = false;
  /// The loss of one worker stops all others: they cannot make their next step, or average, without
  /// it.
  bool loss_stops_all = false;
  /// Parts of the steps' batches go to whoever is free; otherwise worker r has part r of every
  /// step.
  bool hands_out_work = false;
  bool uses_servers = false;
  /// An update, or average, is made of the first strategy.quorum pushes.
  bool takes_quorum = false;
  /// The model moves by exactly the steps of the job, as it does with one process; otherwise
  /// nearly.
  bool moves_exactly = false;
  /// Resumed from a checkpoint, as many workers as before end with the model of a run that was
  /// never stopped, to the byte.
  bool resumes_to_the_byte = false;
  /// A loss that is made good changes nothing: the model is that of the quiet run (without
  /// compression). Otherwise the steps since the last average are made anew, or pieces change
  /// hands.
  bool loss_changes_nothing = false;
  /// Models travel, not gradients or changes: codecs that lose signs or sizes are of no use.
  bool sends_models = false;
  /// It can find out by itself which codec pays (compression "auto").
  bool tries_codecs = false;
};

/// A way of training together: a kind of strategy and, where a kind has several, the value of the
/// key that tells them apart.
struct StrategyWay {
  std::string name;      ///< A word for it: "server-async".
  std::string title;     ///< The same for tables and plots: "server, async".
  std::string kind;      ///< strategy.kind.
  std::string key = {};  ///< "consistency" for strategy.consistency; empty where the kind says all.
  std::string value = {};
  /// Of `[strategy]`, that it reads beside kind, key and compression.
  std::vector<std::string> keys = {};
  std::string words = {};  ///< What it does, in one sentence.
  StrategyTraits traits = {};
};

const std::vector<StrategyWay>& strategy_ways();

/// The kinds, each once: what strategy.kind can be.
std::vector<std::string> strategy_kinds();

/// What strategy.<key> can be: "sync", "async", … for "consistency".
std::vector<std::string> ways_by(std::string_view key);

/// The kinds that read strategy.<key>.
std::vector<std::string> kinds_that_read(std::string_view key);

/// Whether strategies of that kind, if there is one, use servers.
bool uses_servers(std::string_view kind);

/// How the job trains. Where workers push changes of their own parameters they make steps alone
/// between two pushes, so traits may differ from the row's. Throws Error(invalid) for a kind or
/// value that is in no row.
StrategyWay way_of(const StrategyOptions& options);

/// The settings that make a job train so, as `cohort train --set` takes them.
std::vector<std::string> settings_of(const StrategyWay& way);

/// The options of a job that trains so; the rest are defaults.
StrategyOptions options_of(const StrategyWay& way);

}  // namespace cohort::kinds
