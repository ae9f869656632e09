#pragma once

#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "transport/inproc/inproc.h"

namespace cohort::collective {

/// Runs `rank_main` on a thread for each of `world` ranks, connected in this process, and waits for
/// all. Then throws the exception of the lowest rank that ended with one. A rank that ends closes
/// its transport, so that no other waits for it.
inline void run_ranks(int world, const std::function<void(transport::Transport&)>& rank_main) {
  auto ends = transport::make_inproc_group(world);
  std::vector<std::exception_ptr> failures(ends.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    threads.emplace_back([&, rank] {
      try {
        rank_main(*ends[rank]);
      } catch (...) {
        failures[rank] = std::current_exception();
      }
      ends[rank]->close();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace cohort::collective
