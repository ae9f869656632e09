#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace cohort::cluster {

/// Who works on what, where workers do not go in step. The global batch of every step is cut into
/// parts; a *piece* is one part of one step, numbered step * parts + part through the whole job.
/// Whoever is free claims the next piece, so that a slow worker takes fewer of them and nobody
/// waits for it at the end. The board stands in a parameter server (server/door/server_desk.h);
/// workers without servers keep count among themselves (gossip/claims.h), in the same words.
///
///   pieces        0 1 2 3 4 5 6 7 8 9 …
///                 . . A . B . A B ^
///   .  done       A, B  taken by that worker, not done yet       ^  `next`: handed out next
///
/// Taken pieces are done by done(), when what they led to can no longer be lost (it is in the
/// model). Pieces of a worker that is gone() are handed out again, before `next`. What is left at
/// any time (WorkLeft) is `next` and the pieces before it that are not done: that is all that a
/// checkpoint, or the next group, needs so that no piece is left out.

/// A piece of work: one part of the global batch of one step.
struct Claim {
  std::int64_t step = 0;
  int part = 0;
  /// In WorkLeft: the worker that has it, in the group that it was handed out in; -1: nobody.
  int taken_by = -1;

  /// Of the piece, whoever has it.
  bool operator==(const Claim& other) const { return step == other.step && part == other.part; }
  auto operator<=>(const Claim& other) const {
    return std::pair(step, part) <=> std::pair(other.step, other.part);
  }
};

/// What is left to do where work is handed out piece by piece: everything from part number `next`
/// on (step * parts + part), and the pieces before it in `again`, which were handed out and never
/// came back.
struct WorkLeft {
  std::int64_t next = 0;
  std::int64_t parts = 1;  ///< Of a step's batch.
  std::vector<Claim> again = {};
};

/// The same in the fewest words: pieces of `again`, which ascend, that stand just before `next` are
/// told by a smaller `next`.
WorkLeft shortest(WorkLeft left);

/// Hands out the pieces in order, each once. With a bound, no piece is handed out that is more than
/// `bound` steps ahead of the oldest one still being worked on: the fast wait for the slow.
///
/// What a claim costs does not depend on how many pieces are under way. Only a loss, and telling
/// what is left, go through them. Not thread-safe. Calls that name a worker throw Error(invalid)
/// where there is no such worker.
class WorkBoard {
 public:
  struct Options {
    int workers = 1;
    WorkLeft left = {};  ///< What to hand out, `again` first. Its parts stay those of the job.
    std::int64_t end_step = 0;               ///< The first that is not made.
    std::optional<std::int64_t> bound = {};  ///< In steps; nothing: nobody is held back.
  };

  enum class Answer { claimed, wait, end };

  explicit WorkBoard(const Options& options);

  /// The worker has worked on its last claim and wants the next. `wait`: ask again after another
  /// worker has called anything here. At the end of the work it is told while others still work:
  /// what they do comes back should they be lost.
  Answer claim(int worker, Claim& claim);

  /// The worker works on nothing now; nobody waits for it.
  void rest(int worker);

  /// All that the worker has taken is done, and will not be handed out again.
  void done(int worker);

  /// Whether the job has such a piece.
  bool has(const Claim& piece) const;

  /// The same of pieces, all of the job's, that were handed out before this board was made. Before
  /// the first claim.
  void done_before(std::span<const Claim> pieces);

  /// The worker will not come back: what it has taken and not done is handed out next.
  void gone(int worker);

  /// From now on everybody gets `end`.
  void stop();

  /// Pieces that were taken and are not done count as left. Who has them is said there; of pieces
  /// that were handed out before this board was made until its first claim.
  WorkLeft left() const;

 private:
  struct Worker {
    std::optional<std::int64_t> at = {};  ///< The step it works on; nothing while it rests.
    std::vector<Claim> taken = {};        ///< And not done.
  };

  Worker& worker(int number);
  void forget_takers();
  /// The next piece; past the end where there is none.
  Claim next_piece() const;

  Options options_;
  std::int64_t next_;         // Number of the next part of all.
  std::vector<Claim> again_;  // Ascending,
  std::size_t given_ = 0;     // of which the first so many were handed out.
  std::vector<Worker> workers_;
  bool stopped_ = false;
  bool has_claimed_ = false;  // Since this board was made.
};

}  // namespace cohort::cluster
