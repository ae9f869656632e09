#pragma once

#include <functional>
#include <string>
#include <vector>

namespace cohort::bench {

/// What Cohort's own contenders, and the bare loop, do in a round: `cohort bench worker WORDS...`.
/// It is hidden from --help. It is a program of its own like every peer: it is told by words what
/// to do, prints one line of JSON, and ends. Anything wrong is an exception, so that its exit code
/// is not 0 and the round counts as failed.
///
///   words                                                                        line
///   sum cohort|bare RANKS BYTES:REPEATS...                                       timing.h
///   ps memory|remote WORKERS SERVERS BYTES:REPEATS...                            timing.h
///   training NETWORK WORKERS SKIPPED STEPS [CHECKPOINT_EVERY]                    train_worker.cc

/// `words` are those after `cohort bench worker`. Throws Error(invalid) for a kind it does not
/// know.
void run_bench_worker(const std::vector<std::string>& words);

/// The kinds, each with the words after its own name.
void run_sum_worker(const std::vector<std::string>& words);
void run_ps_worker(const std::vector<std::string>& words);
void run_train_worker(const std::vector<std::string>& words);

/// Runs `body` in a process forked from this one, which dies with it and exits with 0, or with 1
/// where `body` throws: then it says so on standard error, after `name`. What it measures it leaves
/// in shared memory. Like after any fork, it has only the thread that called this.
void in_child(const std::string& name, const std::function<void()>& body);

/// Waits for so many children. Throws Error(peer_lost) with `words` at the first that has failed.
void await_children(int count, const std::string& words);

}  // namespace cohort::bench
