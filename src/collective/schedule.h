#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace cohort::collective {

/// Vocabulary. A *rank* is the number of a process in its group, the *world* how many there are. An
/// *algorithm* works on a buffer of `count` elements that every rank has. It cuts the buffer into
/// *segments*, half-open ranges of elements; a rank's *part* of a segment is what its own buffer
/// has there, and a segment's *owner* the rank that makes its sum. A *step* of one rank is a set of
/// actions that may all be under way at once; the next step starts when all are complete. A
/// *schedule* is one rank's list of steps. Schedules are plain data made by pure functions of
/// (rank, world, count): the executor runs them, tests prove them without running them.

struct Segment {
  std::size_t begin = 0;
  std::size_t end = 0;

  std::size_t size() const { return end - begin; }
  bool empty() const { return begin == end; }
  bool operator==(const Segment&) const = default;
};

/// Segment `index` of `count` elements cut into `parts` as evenly as whole blocks of 16 elements
/// (one cache line of floats) allow. Later segments may be empty.
Segment segment_of(std::size_t count, int parts, int index);

enum class ActionKind {
  send,            ///< Send the segment of the buffer to the peer.
  receive_copy,    ///< Receive a segment and put it in the buffer.
  receive_reduce,  ///< Receive a segment and add it to the buffer.
};

/// A message. The peer's schedule has its other end, of a segment of the same size, in the same
/// order among the messages between these two.
struct Action {
  ActionKind kind;
  int peer;
  Segment segment;  ///< Of this rank's buffer. Empty: a message without content, for barriers.

  bool operator==(const Action&) const = default;
};

/// Three rules keep a step free of races and its sums the same in every run:
/// - two ranks exchange at most one message each way;
/// - nothing is written twice, or written and sent;
/// - all reductions are into the same segment and listed by ascending peer. Their sum is taken in
///   the order of the ranks, this rank's own part in its place: ((part 0 + part 1) + part 2) + …
struct Step {
  std::vector<Action> actions;

  /// Adds an action, unless its segment is empty: both sides see that and leave the message out.
  void add(ActionKind kind, int peer, Segment segment);
};

struct Schedule {
  std::string name;  ///< For error messages: "ring all-reduce".
  std::vector<Step> steps;
};

/// The steps of `first`, then those of `second`.
Schedule sequence(std::string name, Schedule first, Schedule second);

}  // namespace cohort::collective
