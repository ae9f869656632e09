#include "gossip/shared_boxes.h"

#include <algorithm>
#include <map>

#include "base/fail.h"

namespace cohort {
namespace {

// The region: one line with the claims, then the boxes by sender and receiver.
struct alignas(64) ClaimLine {
  ClaimCounter counter;
};

class SharedClaims : public Claims {
 public:
  SharedClaims(ClaimCounter& counter, const ClaimRange& range) : counter_(counter), range_(range) {}

  std::optional<Claim> next() override { return counter_.next(range_); }
  void stop() override { counter_.stop(); }
  bool stopped() override { return counter_.stopped(); }

 private:
  ClaimCounter& counter_;
  ClaimRange range_;
};

class SharedBoxes : public PeerBoxes {
 public:
  SharedBoxes(const PeerBoxesOptions& options, Engine& engine)
      : region_(make_region(options, engine)),
        watch_(engine.shared_regions()->watch()),
        claims_(reinterpret_cast<ClaimLine*>(region_.data())->counter,
                {.parts = engine.world(), .end_step = options.end_step}) {
    const std::size_t size = Box::bytes_needed(options.message_bytes);
    auto rest = region_.subspan(sizeof(ClaimLine));
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
    if (!outgoing_.at(peer).put(parcel, when)) return false;
    sent_ += parcel.message.size();
    return true;
  }

  bool empty(int peer) override { return outgoing_.at(peer).empty(); }

  std::optional<Box::Taken> take(int peer) override {
    auto taken = incoming_.at(peer).take();
    if (taken) received_ += taken->message().size();
    return taken;
  }

  bool idle() override { return true; }
  std::optional<int> lost_peer() override { return watch_.dead_rank(); }
  Claims& claims() override { return claims_; }
  std::uint64_t bytes_sent() const override { return sent_; }
  std::uint64_t bytes_received() const override { return received_; }

 private:
  static std::span<std::byte> make_region(const PeerBoxesOptions& options, Engine& engine) {
    std::size_t boxes = 0;
    for (int from = 0; from < engine.world(); ++from) {
      boxes += targets_of(options.topology, from, engine.world()).size();
    }
    const std::size_t bytes = sizeof(ClaimLine) + boxes * Box::bytes_needed(options.message_bytes);
    return engine.shared_regions()->region(bytes, Deadline::in(options.timeout));
  }

  std::span<std::byte> region_;
  PeerWatch watch_;
  SharedClaims claims_;
  std::map<int, Box> outgoing_;
  std::map<int, Box> incoming_;
  std::uint64_t sent_ = 0;
  std::uint64_t received_ = 0;
};

}  // namespace

std::unique_ptr<PeerBoxes> make_shared_boxes(const PeerBoxesOptions& options, Engine& engine) {
  return std::make_unique<SharedBoxes>(options, engine);
}

}  // namespace cohort
