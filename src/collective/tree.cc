#include "collective/tree.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace cohort {
namespace {

struct Relatives {
  std::optional<int> parent;  ///< The root has none.
  std::vector<int> children;  ///< By ascending rank.
};

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

}  // namespace cohort
