#include <map>
#include <utility>
#include <vector>

#include "gossip/boxes/peer_boxes.h"

namespace cohort::gossip {
namespace {

/// The region, made by the engine and laid out alike by every worker:
///
///   ┌──────────────┬───────────────────────┬─────────┬─────────┬───
///   │ ClaimCounter │ a Presence per worker │ box 0→1 │ box 0→2 │ …   by sender, then receiver
///   └──────────────┴───────────────────────┴─────────┴─────────┴───
///
/// Zeroed memory is a counter that has handed out nothing, workers that are all here, and empty
/// boxes, so nobody has to set it up.
struct alignas(64) Presence {
  std::atomic<std::uint32_t> left;  ///< Written by its worker alone: 1 once it has left.
};

/// A parcel is copied once, into the box. A peer is lost when it has said so or its process has
/// ended; that is asked of the kernel, so nobody has to send anything to find out.
class SharedBoxes : public PeerBoxes, private Attendance {
 public:
  SharedBoxes(const PeerBoxesOptions& options, transport::Engine& engine)
      : rank_(engine.rank()),
        world_(engine.world()),
        region_(make_region(options, engine)),
        watch_(engine.shared_regions()->watch()),
        counter_(region_.first(ClaimCounter::bytes_needed(world_)), world_, options.claims),
        claims_(make_counted_claims(counter_, rank_)),
        known_lost_(static_cast<std::size_t>(world_)) {
    const std::size_t size = Box::bytes_needed(options.message_bytes);
    auto rest = region_.subspan(ClaimCounter::bytes_needed(world_));
    workers_ = {reinterpret_cast<Presence*>(rest.data()), static_cast<std::size_t>(world_)};
    rest = rest.subspan(workers_.size_bytes());
    for (int from = 0; from < engine.world(); ++from) {
      for (const int to : targets_of(options.topology, from, engine.world())) {
        const Box box(rest.first(size));
        if (from == engine.rank()) outgoing_[to] = box;
        if (to == engine.rank()) incoming_[from] = box;
        rest = rest.subspan(size);
      }
    }
  }

  bool put(int peer, const Parcel& parcel, WhenFull when) override {
    if (lost(peer)) return false;
    const PutResult result = outgoing_.at(peer).put(parcel, when);
    if (!result) return false;
    returned_ += result.returned;
    traffic_.sent += parcel.message.size();
    return true;
  }

  double returned() override { return std::exchange(returned_, 0); }

  bool empty(int peer) override { return outgoing_.at(peer).empty(); }

  std::optional<Box::Taken> take(int peer) override {
    auto taken = incoming_.at(peer).take();
    if (taken) traffic_.received += taken->message().size();
    return taken;
  }

  bool idle() override { return true; }

  Attendance& attendance() override { return *this; }

  bool lost(int peer) override {
    const auto index = static_cast<std::size_t>(peer);
    if (!known_lost_[index]) {
      known_lost_[index] =
          workers_[index].left.load(std::memory_order_relaxed) != 0 || watch_.is_dead(peer);
    }
    return known_lost_[index];
  }

  std::optional<int> lost_peer() override {
    for (int peer = 0; peer < world_; ++peer) {
      if (peer != rank_ && lost(peer)) return peer;
    }
    return std::nullopt;
  }

  void leave() noexcept override {
    workers_[static_cast<std::size_t>(rank_)].left.store(1, std::memory_order_relaxed);
  }

  Claims& claims() override { return *claims_; }
  Traffic traffic() const override { return traffic_; }

 private:
  static std::span<std::byte> make_region(const PeerBoxesOptions& options,
                                          transport::Engine& engine) {
    std::size_t boxes = 0;
    for (int from = 0; from < engine.world(); ++from) {
      boxes += targets_of(options.topology, from, engine.world()).size();
    }
    const std::size_t bytes = ClaimCounter::bytes_needed(engine.world()) +
                              static_cast<std::size_t>(engine.world()) * sizeof(Presence) +
                              boxes * Box::bytes_needed(options.message_bytes);
    return engine.shared_regions()->region(bytes, options.timeout.deadline());
  }

  int rank_;
  int world_;
  std::span<std::byte> region_;
  os::PeerWatch watch_;
  ClaimCounter counter_;
  std::unique_ptr<Claims> claims_;
  std::span<Presence> workers_;
  std::vector<bool> known_lost_;  // By rank. Who is lost stays so, and is not asked for again.
  std::map<int, Box> outgoing_;   // By receiver.
  std::map<int, Box> incoming_;   // By sender.
  double returned_ = 0;           // Weight of replaced parcels that was not asked for yet.
  Traffic traffic_;
};

}  // namespace

std::unique_ptr<PeerBoxes> make_shared_boxes(const PeerBoxesOptions& options,
                                             transport::Engine& engine) {
  return std::make_unique<SharedBoxes>(options, engine);
}

}  // namespace cohort::gossip
