#include "bench/bench_worker.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>

#include "base/fail.h"
#include "base/names.h"
#include "bench/measured_process.h"

namespace cohort::bench {

void run_bench_worker(const std::vector<std::string>& words) {
  if (words.empty()) fail(ErrorCode::invalid, "usage: cohort bench worker sum|training|ps ...");
  check_known("bench worker", words[0], {"sum", "training", "ps"});
  const std::vector<std::string> rest(words.begin() + 1, words.end());
  if (words[0] == "sum") return run_sum_worker(rest);
  if (words[0] == "ps") return run_ps_worker(rest);
  run_train_worker(rest);
}

void in_child(const std::string& name, const std::function<void()>& body) {
  if (fork() != 0) return;
  die_with_parent();
  try {
    body();
    _exit(0);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", name.c_str(), error.what());
    _exit(1);
  }
}

void await_children(int count, const std::string& words) {
  for (int child = 0; child < count; ++child) {
    int status = 0;
    wait(&status);
    if (status != 0) fail(ErrorCode::peer_lost, "{}", words);
  }
}

}  // namespace cohort::bench
