#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace cohort {

/// A piece of work: one part of the global batch of one step.
struct Claim {
  std::int64_t step = 0;
  int part = 0;
};

/// Hands out the parts of the steps' batches in order, each once, to whoever is free: a slow worker
/// takes fewer of them, so nobody waits at the end. A worker works on its claim until it asks for
/// the next. With a bound, no claim is handed out that is more than `bound` steps ahead of the
/// oldest one still being worked on.
class WorkBoard {
 public:
  struct Options {
    int workers = 1;
    int parts = 1;  ///< Of a step.
    std::int64_t first_step = 0;
    std::int64_t end_step = 0;
    std::optional<std::int64_t> bound = {};
  };

  enum class Answer { claimed, wait, end };

  explicit WorkBoard(const Options& options);

  /// The worker has done its last claim and wants the next. `wait`: ask again after another worker
  /// has called anything here.
  Answer claim(int worker, Claim& claim);

  /// The worker has done its claim, or is gone: nobody waits for it.
  void done(int worker);

  /// From now on everybody gets `end`.
  void stop();

 private:
  Options options_;
  std::int64_t next_ = 0;                        // Number of the next part of all.
  std::vector<std::optional<std::int64_t>> at_;  // The step each worker works on.
  bool stopped_ = false;
};

}  // namespace cohort
