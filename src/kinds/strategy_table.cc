#include "kinds/strategy_table.h"

#include <algorithm>

#include "base/fail.h"
#include "base/names.h"

namespace cohort::kinds {
namespace {

using Names = std::vector<std::string>;

// What several rows have in common.

constexpr StrategyTraits kInStep = {.lockstep = true,
                                    .loss_stops_all = true,
                                    .moves_exactly = true,
                                    .resumes_to_the_byte = true,
                                    .loss_changes_nothing = true};
constexpr StrategyTraits kHandedOut = {.hands_out_work = true};
/// All wait for the average, but make their steps alone.
constexpr StrategyTraits kAveragedInStep = {
    .loss_stops_all = true, .moves_exactly = true, .resumes_to_the_byte = true};

// Additions to the above.

StrategyTraits with_servers(StrategyTraits traits) {
  traits.uses_servers = true;
  return traits;
}

StrategyTraits with_quorum(StrategyTraits traits) {
  traits.takes_quorum = true;
  return traits;
}

StrategyTraits trying_codecs(StrategyTraits traits) {
  traits.tries_codecs = true;
  return traits;
}

StrategyTraits sending_models(StrategyTraits traits) {
  traits.sends_models = true;
  return traits;
}

Names joined(Names first, const Names& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

/// A row of a kind that has several ways: what it is told apart by, and how it behaves.
struct Way {
  std::string value;
  StrategyTraits traits;
  Names more_keys;
  std::string words;
};

StrategyWay server(const Way& way) {
  return {
      .name = "server-" + way.value,
      .title = "server, " + way.value,
      .kind = "parameter-server",
      .key = "consistency",
      .value = way.value,
      .keys = joined({"push", "local_steps", "weight", "weight_power", "replicas"}, way.more_keys),
      .words = way.words,
      .traits = with_servers(way.traits)};
}

StrategyWay averaging(const Way& way) {
  return {.name = "averaging-" + way.value,
          .title = "averaging, " + way.value,
          .kind = "averaging",
          .key = "mode",
          .value = way.value,
          .keys = joined({"every", "weight", "weight_power", "replicas", "outer.kind", "outer.lr",
                          "outer.momentum"},
                         way.more_keys),
          .words = way.words,
          .traits = with_servers(way.traits)};
}

StrategyWay gossip(const std::string& name, const Way& way) {
  return {.name = name,
          .title = "gossip, " + way.value,
          .kind = "gossip",
          .key = "send",
          .value = way.value,
          .keys = way.more_keys,
          .words = way.words,
          .traits = way.traits};
}

/// Where an option that tells ways apart stands.
std::string StrategyOptions::*member_of(std::string_view key) {
  if (key == "consistency") return &StrategyOptions::consistency;
  if (key == "mode") return &StrategyOptions::mode;
  return &StrategyOptions::send;
}

}  // namespace

const std::vector<StrategyWay>& strategy_ways() {
  static const std::vector<StrategyWay> ways = {
      {.name = "allreduce",
       .title = "all-reduce",
       .kind = "allreduce",
       .keys = {"algorithm", "bucket_bytes", "factors"},
       .words = "all add up their gradients, each makes the same update",
       .traits = trying_codecs(kInStep)},
      server({"sync", kInStep, {}, "servers add up all gradients and update"}),
      server({"async", kHandedOut, {}, "servers apply each gradient at once"}),
      server({"bounded",
              kHandedOut,
              {"staleness"},
              "servers apply each gradient at once; nobody runs far ahead"}),
      server({"k-of-n",
              with_quorum(kHandedOut),
              {"quorum", "late"},
              "servers update with the first k gradients"}),
      averaging(
          {"sync", kAveragedInStep, {}, "workers train alone, every H steps the centre averages"}),
      averaging({"partial",
                 with_quorum(kHandedOut),
                 {"quorum", "late"},
                 "the same, as soon as k have arrived"}),
      gossip("gossip", {"parameters",
                        sending_models(kHandedOut),
                        {"topology"},
                        "workers tell neighbours their parameters and merge what they are told"}),
      gossip("gossip-gradients",
             {"gradients",
              kHandedOut,
              {},
              "workers tell all others their gradients and apply what they are told"}),
  };
  return ways;
}

std::vector<std::string> strategy_kinds() {
  Names kinds;
  for (const StrategyWay& way : strategy_ways()) {
    if (kinds.empty() || kinds.back() != way.kind) kinds.push_back(way.kind);
  }
  return kinds;
}

std::vector<std::string> ways_by(std::string_view key) {
  Names values;
  for (const StrategyWay& way : strategy_ways()) {
    if (way.key == key) values.push_back(way.value);
  }
  return values;
}

std::vector<std::string> kinds_that_read(std::string_view key) {
  Names kinds;
  for (const StrategyWay& way : strategy_ways()) {
    const bool reads = way.key == key || std::ranges::find(way.keys, key) != way.keys.end();
    if (reads && (kinds.empty() || kinds.back() != way.kind)) kinds.push_back(way.kind);
  }
  return kinds;
}

bool uses_servers(std::string_view kind) {
  return std::ranges::any_of(strategy_ways(), [&](const StrategyWay& way) {
    return way.kind == kind && way.traits.uses_servers;
  });
}

StrategyWay way_of(const StrategyOptions& options) {
  check_known("strategy", options.kind, strategy_kinds());
  const auto found = std::ranges::find_if(strategy_ways(), [&](const StrategyWay& way) {
    return way.kind == options.kind &&
           (way.key.empty() || options.*member_of(way.key) == way.value);
  });
  if (found == strategy_ways().end()) {
    const std::string& key =
        std::ranges::find(strategy_ways(), options.kind, &StrategyWay::kind)->key;
    check_known("strategy." + key, options.*member_of(key), ways_by(key));
  }
  StrategyWay way = *found;
  // Workers that push changes of their parameters make steps alone in between.
  if (way.kind == "parameter-server" && options.push == "delta") {
    way.traits.lockstep = false;
    way.traits.loss_changes_nothing = false;
  }
  return way;
}

std::vector<std::string> settings_of(const StrategyWay& way) {
  Names settings = {"strategy.kind=" + way.kind};
  if (!way.key.empty()) settings.push_back("strategy." + way.key + "=" + way.value);
  return settings;
}

StrategyOptions options_of(const StrategyWay& way) {
  StrategyOptions options;
  options.kind = way.kind;
  if (!way.key.empty()) options.*member_of(way.key) = way.value;
  return options;
}

}  // namespace cohort::kinds
