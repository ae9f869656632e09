// Boxes in shared memory between processes: whatever the timing, the weight that was sent is the
// weight that was taken or is still in a box.
//
// A file of its own, and an early one: no process may fork once it has made an RpcServer.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "gossip/boxes/boxes_test_support.h"
#include "os/memory.h"

namespace cohort::gossip {
namespace {

const std::vector<float> kFloats = {1, 2};

// Ranks that are forked processes.
class ForkedEngine : public transport::ForwardingEngine, public transport::SharedRegions {
 public:
  ForkedEngine(transport::InprocHub& hub, int rank, const os::SharedMemory& memory)
      : transport::ForwardingEngine(hub.engine(rank)), memory_(memory) {}

  transport::SharedRegions* shared_regions() override { return this; }
  os::PeerWatch watch() override { return {}; }
  std::span<std::byte> region(std::size_t bytes, Deadline) override {
    return {memory_.data(), bytes};
  }

 private:
  const os::SharedMemory& memory_;
};

constexpr int kProcesses = 3;
constexpr std::int64_t kProcessSteps = 500;

// Sends a weight of 1 to everybody with each claim, and takes; returns what it has in the end.
double send_and_take(PeerBoxes& boxes, int rank) {
  double weight = 0;
  const auto take_all = [&] {
    for (const int peer : sources_of(Topology::all, rank, kProcesses)) {
      if (const auto taken = boxes.take(peer)) weight += taken->weight();
    }
  };
  while (boxes.claims().next()) {
    for (const int peer : targets_of(Topology::all, rank, kProcesses)) {
      const bool put = boxes.put(peer, {1, std::as_bytes(std::span(kFloats))}, WhenFull::replace);
      weight += (put ? -1 : 0) + boxes.returned();
    }
    take_all();
  }
  return weight;
}

TEST(SharedBoxes, LoseNoWeightBetweenProcesses) {
  const os::SharedMemory memory = os::SharedMemory::create(1 << 16);
  const os::SharedMemory results = os::SharedMemory::create(4096);
  auto* weights = reinterpret_cast<double*>(results.data());
  const PeerBoxesOptions options{
      .topology = Topology::all,
      .message_bytes = 64,
      .claims = {.work = {.parts = kProcesses}, .end_step = kProcessSteps}};
  cluster::MemoryStore store;
  transport::InprocHub hub(kProcesses);
  std::vector<pid_t> children;
  for (int rank = 0; rank < kProcesses; ++rank) {
    children.push_back(::fork());
    if (children.back() != 0) continue;
    ForkedEngine engine(hub, rank, memory);
    const auto boxes = make_peer_boxes(options, engine, store);
    weights[rank] = send_and_take(*boxes, rank);
    ::_exit(0);
  }
  double total = 0;
  for (int rank = 0; rank < kProcesses; ++rank) {
    int status = -1;
    ::waitpid(children[static_cast<std::size_t>(rank)], &status, 0);
    EXPECT_EQ(status, 0);
    total += weights[rank];
  }
  for (int rank = 0; rank < kProcesses; ++rank) {
    ForkedEngine engine(hub, rank, memory);
    const auto boxes = make_peer_boxes(options, engine, store);
    EXPECT_FALSE(boxes->claims().next());
    total += send_and_take(*boxes, rank);
    for (const int peer : sources_of(Topology::all, rank, kProcesses)) {
      if (const auto taken = boxes->take(peer)) total += taken->weight();
    }
  }
  EXPECT_EQ(total, 0);
}

}  // namespace
}  // namespace cohort::gossip
