// The binomial tree. Ranks are counted from the root (the root is 0); the parent of a rank is the
// rank without its lowest set bit. The whole buffer travels, in one segment.
//
//            0                 parent of 6 (110) is 4 (100), of 7 (111) is 6 (110);
//       ╱    │    ╲            children of 4 (100) are 5 (101) and 6 (110).
//      4     2     1
//     ╱ ╲    │
//    6   5   3                 Reduce: a rank adds up what its children send, then sends to its
//    │                         parent. Broadcast: it receives from its parent, then sends to its
//    7                         children.
//
// All-reduce is a reduce to rank 0 and a broadcast from it: every sum is made in one place. About
// 2 log2(world) messages one after the other, but every one of the whole buffer: best for small
// buffers and many ranks.

#include "collective/algorithms.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace cohort::collective {
namespace {

struct Relatives {
  std::optional<int> parent;  ///< The root has none.
  std::vector<int> children;  ///< By ascending rank.
};

/// Counted from the root, the children of d are d + 1, d + 2, d + 4, … below d's lowest set bit. A
/// root other than 0 only turns the numbers round, so children are sorted again: a step lists its
/// reductions by ascending peer.
Relatives relatives_of(int rank, int world, int root) {
  const int from_root = (rank - root + world) % world;
  const auto rank_at = [&](int distance) { return (distance + root) % world; };
  const int lowest_bit = from_root == 0 ? world : from_root & -from_root;

  Relatives relatives;
  if (from_root != 0) relatives.parent = rank_at(from_root - lowest_bit);
  for (int bit = 1; bit < lowest_bit && from_root + bit < world; bit *= 2) {
    relatives.children.push_back(rank_at(from_root + bit));
  }
  std::sort(relatives.children.begin(), relatives.children.end());
  return relatives;
}

}  // namespace

Schedule tree_reduce(int rank, int world, std::size_t count, int root) {
  const auto [parent, children] = relatives_of(rank, world, root);
  Step gather;
  for (const int child : children) gather.add(ActionKind::receive_reduce, child, {0, count});
  Step pass_up;
  if (parent) pass_up.add(ActionKind::send, *parent, {0, count});
  return {"tree reduce", {std::move(gather), std::move(pass_up)}};
}

Schedule tree_broadcast(int rank, int world, std::size_t count, int root) {
  const auto [parent, children] = relatives_of(rank, world, root);
  Step hear;
  if (parent) hear.add(ActionKind::receive_copy, *parent, {0, count});
  Step pass_down;
  for (const int child : children) pass_down.add(ActionKind::send, child, {0, count});
  return {"tree broadcast", {std::move(hear), std::move(pass_down)}};
}

Schedule tree_all_reduce(int rank, int world, std::size_t count) {
  return sequence("tree all-reduce", tree_reduce(rank, world, count, 0),
                  tree_broadcast(rank, world, count, 0));
}

}  // namespace cohort::collective
