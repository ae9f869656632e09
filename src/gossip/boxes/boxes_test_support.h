#pragma once

#include <gtest/gtest.h>

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gossip/boxes/peer_boxes.h"
#include "transport/inproc/inproc_hub.h"

namespace cohort {

/// A rank that shares no memory with the others.
class ApartEngine : public Engine {
 public:
  ApartEngine(int rank, int world) : rank_(rank), world_(world) {}

  std::string name() const override { return "apart"; }
  int rank() const override { return rank_; }
  int world() const override { return world_; }
  std::unique_ptr<Transport> connect(Deadline) override { return nullptr; }
  SharedRegions* shared_regions() override { return nullptr; }
  bool sends_in_background() const override { return true; }

 private:
  int rank_;
  int world_;
};

/// The boxes of all ranks, in this process.
struct BoxesGroup {
  BoxesGroup(bool shared, int world, const PeerBoxesOptions& options)
      : hub(world), boxes(static_cast<std::size_t>(world)) {
    run(world, [&](int rank) {
      const std::unique_ptr<Engine> engine =
          shared ? hub.engine(rank) : std::make_unique<ApartEngine>(rank, world);
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

  InprocHub hub;
  MemoryStore store;
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

}  // namespace cohort
