#include "transport/inproc/inproc.h"
#include "transport/rank_group.h"

namespace cohort::transport {

/// One rank's engine: counts its calls and asks the hub for what belongs to each count.
class InprocHub::InprocEngine : public Engine, public SharedRegions {
 public:
  InprocEngine(InprocHub& hub, int rank)
      : Engine({.name = "inproc",
                .rank = rank,
                .hosts = std::vector<int>(static_cast<std::size_t>(hub.world_), 0)}),
        hub_(hub) {}

  SharedRegions* shared_regions() override { return this; }
  os::PeerWatch watch() override { return {}; }

  std::unique_ptr<Transport> connect(Deadline) override {
    return hub_.take_endpoint(connections_++, rank());
  }
  std::unique_ptr<Engine> group(std::span<const int> ranks, Deadline) override {
    const RankGroup group(ranks, rank(), world());
    return hub_.hub_of(keys_.next(group), group.world()).engine(group.rank());
  }
  std::span<std::byte> region(std::size_t bytes, Deadline) override {
    return hub_.region(regions_++, bytes);
  }
  /// A rank that was left alone may go on where it trained with others.
  std::span<std::byte> lasting_region(std::size_t bytes, std::shared_ptr<os::SharedMemory>& memory,
                                      Deadline deadline) override {
    if (!memory || world() > 1) return SharedRegions::lasting_region(bytes, memory, deadline);
    memory->resize(bytes);
    return {memory->data(), bytes};
  }

 private:
  InprocHub& hub_;
  std::size_t connections_ = 0;
  std::size_t regions_ = 0;
  GroupKeys keys_;
};

std::unique_ptr<Engine> InprocHub::engine(int rank) {
  return std::make_unique<InprocEngine>(*this, rank);
}

std::unique_ptr<Transport> InprocHub::take_endpoint(std::size_t group, int rank) {
  const std::lock_guard lock(mutex_);
  while (groups_.size() <= group) groups_.push_back(make_inproc_group(world_));
  return std::move(groups_[group][static_cast<std::size_t>(rank)]);
}

InprocHub& InprocHub::hub_of(const std::string& key, int world) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<InprocHub>& hub = hubs_[key];
  if (!hub) hub = std::make_unique<InprocHub>(world);
  return *hub;
}

std::span<std::byte> InprocHub::region(std::size_t index, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  while (regions_.size() <= index) regions_.emplace_back(bytes);
  return regions_[index].bytes();
}

}  // namespace cohort::transport
