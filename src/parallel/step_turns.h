#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "group/communicator.h"

namespace cohort::parallel {

/// What a rank says of itself when the ranks average gradients, before anything is summed.
struct Turn {
  enum class Kind : std::uint64_t {
    alike = 1,    ///< It has gradients that count like any other rank's.
    rows = 2,     ///< It has gradients of so many rows (value).
    follows = 3,  ///< It has run out of batches, and makes the others' steps too.
    stands = 4,   ///< The same, but its model stands still. Of both, value: steps made so far.
  };

  /// Which of the program's modules it averages for, from 1. Whoever has run out of batches of several
  /// of them goes along with the others.
  static constexpr std::uint64_t kAnyModule = 0;

  std::uint64_t module = kAnyModule;
  Kind kind = Kind::alike;
  std::int64_t value = 0;

  bool takes_part() const { return kind == Kind::alike || kind == Kind::rows; }
};

/// How much a rank's gradients count in the average.
struct Weights {
  std::vector<double> of_rank;  ///< Together 1, or all 0 where nobody has a row.
  bool equal = true;            ///< All ranks take part and count alike.
  bool nobody = false;          ///< Nobody has a row.
  int lowest_active = 0;        ///< The lowest rank that takes part.
};

/// Shows everybody's turn to all, and sets used[i] where any rank has set it; `used` is as long for
/// all modules. One small call: every rank has a place for its turn among zeros, and all take the
/// largest of each byte.
std::vector<Turn> exchange_turns(group::Communicator& group, const Turn& own,
                                 std::span<std::uint8_t> used);

/// Throws Error(invalid), in the same words on all ranks, where their turns do not go together: some
/// give rows and others do not, or they wait for gradients of different modules.
void check_turns(std::span<const Turn> turns);

/// The module that turns which go together are for.
std::uint64_t module_of(std::span<const Turn> turns);

/// Of turns that go together; at least one takes part.
Weights weights_of(std::span<const Turn> turns);

bool all_have_run_out(std::span<const Turn> turns);

}  // namespace cohort::parallel
