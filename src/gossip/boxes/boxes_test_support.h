#pragma once

#include <gtest/gtest.h>

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gossip/boxes/peer_boxes.h"
#include "transport/engine_test_support.h"
#include "transport/inproc/inproc.h"

namespace cohort::gossip {

/// The boxes of all ranks, in this process.
struct BoxesGroup {
  BoxesGroup(bool shared, int world, const PeerBoxesOptions& options)
      : hub(world), boxes(static_cast<std::size_t>(world)) {
    run(world, [&](int rank) {
      std::unique_ptr<transport::Engine> engine = hub.engine(rank);
      if (!shared) engine = std::make_unique<transport::ApartEngine>(std::move(engine));
      boxes[static_cast<std::size_t>(rank)] = make_peer_boxes(options, *engine, store);
    });
  }

  PeerBoxes& of(int rank) { return *boxes[static_cast<std::size_t>(rank)]; }

  /// Each rank on a thread of its own.
  static void run(int world, const std::function<void(int rank)>& body) {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < world; ++rank) {
      threads.emplace_back([&, rank] {
        try {
          body(rank);
        } catch (const std::exception& error) {
          ADD_FAILURE() << "rank " << rank << ": " << error.what();
        }
      });
    }
  }

  transport::InprocHub hub;
  cluster::MemoryStore store;
  std::vector<std::unique_ptr<PeerBoxes>> boxes;
};

/// Calls `look` until it is true; false after a minute.
inline bool eventually(const std::function<bool()>& look) {
  const auto deadline = Deadline::in_seconds(60);
  while (!look()) {
    if (deadline.passed()) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace cohort::gossip
