#include "parallel/step_turns.h"

#include <algorithm>
#include <cstring>

#include "base/fail.h"

namespace cohort::parallel {
namespace {

// A turn travels as three words of 64 bits, in the order of this process' kind: ranks of one program.
constexpr std::size_t kTurnBytes = 3 * sizeof(std::uint64_t);

void put_turn(const Turn& turn, std::byte* to) {
  const std::uint64_t words[] = {turn.module, static_cast<std::uint64_t>(turn.kind),
                                 static_cast<std::uint64_t>(turn.value)};
  std::memcpy(to, words, kTurnBytes);
}

Turn turn_at(const std::byte* from, int rank) {
  std::uint64_t words[3];
  std::memcpy(words, from, kTurnBytes);
  const bool sound = words[1] >= static_cast<std::uint64_t>(Turn::Kind::alike) &&
                     words[1] <= static_cast<std::uint64_t>(Turn::Kind::stands);
  const auto value = static_cast<std::int64_t>(words[2]);
  if (!sound || value < 0) {
    fail(ErrorCode::corrupt, "rank {} says of its gradients what makes no sense", rank);
  }
  return {.module = words[0], .kind = static_cast<Turn::Kind>(words[1]), .value = value};
}

const char* words_of(const Turn& turn) {
  return turn.kind == Turn::Kind::rows ? "wait(rows)" : "wait()";
}

}  // namespace

std::vector<Turn> exchange_turns(group::Communicator& group, const Turn& own,
                                 std::span<std::uint8_t> used) {
  const auto world = static_cast<std::size_t>(group.world());
  std::vector<std::byte> all(used.size() + world * kTurnBytes);
  std::ranges::copy(std::as_bytes(used), all.begin());
  std::byte* const turns_at = all.data() + used.size();
  put_turn(own, turns_at + static_cast<std::size_t>(group.rank()) * kTurnBytes);
  group.all_reduce({{.bytes = all,
                     .type = collective::ElementType::u8,
                     .shape = {static_cast<std::int64_t>(all.size())}}},
                   {collective::Reduction::max});
  std::ranges::copy_n(all.begin(), static_cast<std::ptrdiff_t>(used.size()),
                      std::as_writable_bytes(used).begin());
  std::vector<Turn> turns;
  for (std::size_t rank = 0; rank < world; ++rank) {
    turns.push_back(turn_at(turns_at + rank * kTurnBytes, static_cast<int>(rank)));
  }
  return turns;
}

std::uint64_t module_of(std::span<const Turn> turns) {
  const auto named =
      std::ranges::find_if(turns, [](const Turn& turn) { return turn.module != Turn::kAnyModule; });
  return named == turns.end() ? Turn::kAnyModule : named->module;
}

void check_turns(std::span<const Turn> turns) {
  const std::uint64_t module = module_of(turns);
  const auto names_it = std::ranges::find(turns, module, &Turn::module) - turns.begin();
  std::size_t first = turns.size();  // That takes part.
  for (std::size_t rank = 0; rank < turns.size(); ++rank) {
    if (turns[rank].module != module && turns[rank].module != Turn::kAnyModule) {
      fail(
          ErrorCode::invalid,
          "rank {} waits for the gradients of module {} and rank {} for those of module {} (in the "
          "order in which they were made, from 1): all ranks make the same calls of wait(), and "
          "who "
          "has run out of batches calls finish_all() with all modules",
          names_it, module, rank, turns[rank].module);
    }
    if (!turns[rank].takes_part()) continue;
    if (first == turns.size()) first = rank;
    if (turns[rank].kind != turns[first].kind) {
      fail(ErrorCode::invalid, "rank {} calls {} and rank {} calls {}: all give rows, or none does",
           first, words_of(turns[first]), rank, words_of(turns[rank]));
    }
  }
}

Weights weights_of(std::span<const Turn> turns) {
  Weights weights;
  double total = 0;
  for (const Turn& turn : turns) {
    const double counts = turn.kind == Turn::Kind::rows    ? static_cast<double>(turn.value)
                          : turn.kind == Turn::Kind::alike ? 1.0
                                                           : 0.0;
    weights.of_rank.push_back(counts);
    total += counts;
  }
  const double first = weights.of_rank.front();
  weights.equal = std::ranges::all_of(turns, &Turn::takes_part) && total > 0 &&
                  std::ranges::all_of(weights.of_rank, [&](double one) { return one == first; });
  weights.nobody = !(total > 0);
  for (double& one : weights.of_rank) one = weights.nobody ? 0 : one / total;
  weights.lowest_active =
      static_cast<int>(std::ranges::find_if(turns, &Turn::takes_part) - turns.begin());
  return weights;
}

bool all_have_run_out(std::span<const Turn> turns) {
  return std::ranges::none_of(turns, &Turn::takes_part);
}

}  // namespace cohort::parallel
