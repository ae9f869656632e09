#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cluster/work_board.h"
#include "os/memory.h"

namespace cohort::tensor {

/// What only one worker has (what compression left over, a velocity of its own). Only the strategy
/// that made it understands it: it names what it keeps in `meaning`, and whoever looks for another
/// meaning leaves it alone (own_of() below).
struct OwnMemory {
  std::string meaning = {};  ///< Empty: there is nothing.
  std::vector<std::vector<float>> floats = {};
  std::vector<double> doubles = {};
  std::vector<std::int64_t> numbers = {};

  bool empty() const { return meaning.empty(); }
  void clear() { *this = {}; }
  bool operator==(const OwnMemory&) const = default;
};

/// Values of a tensor that is not trained, in the order of rows.
using ApartTensor = std::variant<std::vector<float>, std::vector<std::int64_t>>;

/// What it takes to go on with a training, under any strategy and with any number of workers and
/// servers: the model with its optimizer after a number of whole steps. Floats stand in the order
/// of ModelLayout::of(model, Tables::among_parameters), padding included.
///
/// A strategy fills one (StateKeeper in strategy/), and one of the next run or group starts from
/// it. Between them it either goes through the files of a checkpoint (train/state/), or stays in
/// memory where a worker has survived the loss of another. Fields below that say so are only for
/// the latter: they name things of this host or of servers that still run.
///
/// A plain value without invariants of its own; whoever has it may change it, on one thread. It is
/// large and made again and again: whoever fills one uses the vectors it has.
struct TrainingState {
  std::int64_t step = 0;  ///< Steps done. Where work is handed out, those of which all is done.
  cluster::WorkLeft work = {};
  std::int64_t updates = 0;  ///< Of the optimizer whose slots these are; may differ from `step`.
  std::vector<float> parameters = {};          ///< Empty: the servers have them.
  std::vector<std::vector<float>> slots = {};  ///< One per Optimizer::slots(); empty: all zero.
  std::vector<float> buffers = {};
  OwnMemory own = {};
  /// The same of the compressed messages between this worker and servers.
  OwnMemory link = {};
  /// Tensors of the model that stand in neither parameters nor buffers, by name: frozen ones, and
  /// counters of layers. Empty: as the model has them.
  std::map<std::string, ApartTensor> apart = {};
  /// Where a checkpoint is gone on from with more workers than had written it: whose model, slots
  /// and buffers these are, too. Not for a checkpoint.
  std::optional<int> copy_of = {};
  /// What this worker has pushed or would have, and does not know to be applied, by server. Not for
  /// a checkpoint.
  std::vector<std::vector<std::byte>> unanswered = {};
  /// In memory only, where servers have the parameters and all workers push after the same steps:
  /// the servers' version that `step` is of, and the step of the one after it, should they have
  /// made that of a push which got no answer.
  struct Pushed {
    std::uint64_t version = 0;
    std::int64_t next_step = 0;
  };
  std::optional<Pushed> pushed = {};
  /// Memory of this host that has parameters and slots, which are then empty here: the next group
  /// of workers goes on in it, and nothing is copied. Only from one group to the next, by meaning
  /// of the strategy that filled it.
  std::shared_ptr<os::SharedMemory> shared = {};
};

/// What a worker that goes on from `state` finds there of such a meaning; null where it is
/// something else, or there is no state.
inline const OwnMemory* own_of(const TrainingState* state, std::string_view meaning) {
  return state != nullptr && state->own.meaning == meaning ? &state->own : nullptr;
}

}  // namespace cohort::tensor
