#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "collective/elements.h"
#include "collective/reduce_kernel.h"

namespace cohort::group {

/// What ranks of a group do together. All ranks make the same collectives in the same order; a send
/// has a receive on the other end.
enum class Operation : std::uint8_t {
  barrier,
  all_reduce,
  broadcast,
  all_gather,
  reduce_scatter,
  all_to_all,
  split,
  empty,
  send,
  receive,
};

/// One call of one rank, as it shows it to the others before anything is computed: a rank that calls
/// something else, or with another type or shape, is found by all ranks at once, and none of them
/// waits for what will not come.
///
/// A plain record of fixed size, since it travels as its bytes between processes of one build. What
/// comes from a peer is checked (is_sound) before it is looked at.
struct Call {
  static constexpr std::size_t kMostDimensions = 8;
  static constexpr std::uint32_t kMagic = 0x4c4c4143;  // "CALL"

  std::uint32_t magic = kMagic;
  Operation operation = Operation::barrier;
  collective::ElementType type = collective::ElementType::byte;
  collective::Reduction how = collective::Reduction::sum;
  std::uint8_t mean = 0;      ///< 1: the sum divided by the number of ranks.
  std::uint64_t number = 0;   ///< Of the collectives of this group, from 1; or between two ranks.
  std::int32_t peer = -1;     ///< The root, or who is sent to or received from; -1: nobody.
  std::uint32_t tensors = 0;  ///< How many there are.
  std::uint32_t dimensions = 0;  ///< Of the first.
  std::uint32_t reserved = 0;
  std::uint64_t digest = 0;                  ///< Of the shapes of all that must agree.
  std::int64_t sizes[kMostDimensions] = {};  ///< Of the first, as many as there are and fit.
  std::int64_t values[4] = {};               ///< What an operation wants to tell beside that.
  std::uint64_t place = 0;  ///< Where the tensors stand in shared memory (SharedArrays::find).

  /// Takes in the next tensor's shape. Where `any_rows`, the first dimension may differ.
  void add_shape(std::span<const std::int64_t> shape, bool any_rows = false);

  bool is_sound() const;
};
static_assert(sizeof(Call) <= 256);

/// `digest` with one more word. It only has to tell mistakes apart: no stranger chooses the words.
std::uint64_t mixed(std::uint64_t digest, std::uint64_t word);

/// "all_reduce (sum) of float32 [3, 4]".
std::string describe(const Call& call);

/// Throws Error(invalid), in the same words on every rank, where the ranks' calls do not belong
/// together. One call of every rank, by rank, all of them sound.
void check_agreement(std::span<const Call> calls);

/// Whether the ranks' tensors stand in the same place of shared memory, and not outside of it.
bool share_a_place(std::span<const Call> calls);

/// What is wrong with a message between two ranks; empty: nothing.
std::string mismatch(const Call& sent, int sender, const Call& received, int receiver);

/// The call in a record of another rank. Throws Error(corrupt) where there is none.
Call call_in(std::span<const std::byte> record, int rank);

/// As users of tensors call it: "float32".
const char* name_of(collective::ElementType type);

}  // namespace cohort::group
