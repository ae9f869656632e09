#pragma once

#include <string>
#include <vector>

#include "transport/engine.h"

namespace cohort::transport {

/// Who shall be connected. Every rank knows it of all ranks before an engine is picked.
struct Peers {
  int rank = 0;
  std::vector<int> hosts;  ///< By rank; see Engine::hosts.

  int world() const { return static_cast<int>(hosts.size()); }
  /// The lowest rank that is not on this rank's host; -1: there is none.
  int elsewhere() const;
  /// Whether some host has more than one rank.
  bool any_share_a_host() const;
};

/// The engines there are, the best first: "auto" takes the first that can work. Job keys, checks
/// and docs read these rows, so an engine needs nothing but a folder and a row.
struct EngineRow {
  std::string name;   ///< cluster.engine.
  bool threads;       ///< Whether workers are threads of one process, or processes.
  std::string words;  ///< For users: what it is.
  /// Why it cannot work with these ranks, or is not for them, to follow the engine's name in a
  /// sentence; empty: it can. All ranks come to the same answer, since all know the same peers.
  std::string (*objection)(const Peers& peers);
  /// Null where threads ask their hub.
  std::unique_ptr<Engine> (*make)(const EngineOptions& options, const Peers& peers,
                                  cluster::Store& store, Deadline deadline);
};

const std::vector<EngineRow>& engine_table();

/// What job files write instead of a name to have one picked.
inline constexpr const char* kAutoEngine = "auto";

/// What cluster.engine can be.
std::vector<std::string> engine_names();

/// What it can be where workers are threads, or processes.
std::vector<std::string> engine_names(bool threads);

}  // namespace cohort::transport
