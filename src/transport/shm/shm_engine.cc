#include "transport/shm/shm.h"

#include <unistd.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/fail.h"
#include "base/integers.h"
#include "cluster/store.h"
#include "os/memory.h"
#include "transport/rank_group.h"

namespace cohort::transport {
namespace {

/// A rank that may be on this host.
struct RankHere {
  bool here = true;
  pid_t pid = 0;  ///< Of this process where it is elsewhere: that one is never seen as dead.
};

/// What the key of a region says once it lies in the store to be taken.
constexpr const char* kMade = "made";

/// How many times larger than at first a lasting region may become: more workers may join, each with
/// gradients of its own. What is not used costs nothing.
constexpr std::size_t kRoomToGrow = 256;

/// Regions have no names. The lowest rank of this host makes each one and gives it to the others
/// through the store, which the kernel carries (Store::give). Keys are numbered, which is why all
/// ranks must ask for regions in the same order. Where it cannot be made (no space), the key says
/// why, so that all ranks fail at once with the same words instead of waiting until their deadlines.
class ShmEngine : public Engine, public SharedRegions {
 public:
  /// What the ranks say to each other stands in `store`: keys of this host, and of this group.
  ShmEngine(const EngineOptions& options, std::unique_ptr<cluster::Store> store,
            std::vector<RankHere> ranks)
      : Engine({.name = "shm",
                .rank = options.rank,
                .hosts = std::vector<int>(static_cast<std::size_t>(options.world), 0)}),
        options_(options),
        store_(std::move(store)),
        ranks_(std::move(ranks)) {
    for (const RankHere& rank : ranks_) pids_.push_back(rank.pid);
  }

  SharedRegions* shared_regions() override { return this; }
  os::PeerWatch watch() override { return os::PeerWatch(pids_); }

  std::unique_ptr<Engine> group(std::span<const int> ranks, Deadline) override {
    const RankGroup group(ranks, rank(), world());
    for (const int other : ranks) {
      if (ranks_[static_cast<std::size_t>(other)].here) continue;
      fail(ErrorCode::invalid, "rank {} is on another host and cannot share memory", other);
    }
    EngineOptions options = options_;
    options.rank = group.rank();
    options.world = group.world();
    return std::make_unique<ShmEngine>(
        options,
        std::make_unique<cluster::PrefixStore>(*store_, keys_.next(group), nullptr, group.ranks()),
        group.part_of(ranks_));
  }

  std::span<std::byte> region(std::size_t bytes, Deadline deadline) override {
    return region(bytes, os::SharedMemory::Pages::reserved, deadline);
  }

  std::unique_ptr<Transport> connect(Deadline deadline) override {
    const ShmOptions shm{.cores = options_.cores, .ranks_here = ranks_here()};
    const auto memory =
        region(shm_bytes_needed(world(), shm), os::SharedMemory::Pages::on_use, deadline);
    return make_shm_transport(rank(), world(), memory, watch(), shm);
  }

  std::span<std::byte> lasting_region(std::size_t bytes, std::shared_ptr<os::SharedMemory>& memory,
                                      Deadline deadline) override {
    const std::string key = makers_key("lasting", lasting_regions_++);
    if (makes_memory()) {
      offer(key, [&]() -> os::SharedMemory& {
        if (memory) {
          memory->resize(bytes);
        } else {
          memory = std::make_shared<os::SharedMemory>(os::SharedMemory::create(
              bytes, os::SharedMemory::Pages::reserved, bytes * kRoomToGrow));
        }
        return *memory;
      });
    } else {
      memory = std::make_shared<os::SharedMemory>(
          taken(key, os::SharedMemory::Pages::reserved, deadline));
    }
    check_size(memory->size(), bytes);
    return {memory->data(), bytes};
  }

 private:
  int ranks_here() const {
    return static_cast<int>(std::ranges::count(ranks_, true, &RankHere::here));
  }
  /// The first of those who share it.
  bool makes_memory() const { return rank() == first_here(); }
  int first_here() const {
    return static_cast<int>(std::ranges::find(ranks_, true, &RankHere::here) - ranks_.begin());
  }

  std::string makers_key(const char* kind, std::size_t number) const {
    return fmt::format("{}/{}{}", kind, number, store_->mark_of_rank(first_here()));
  }

  std::span<std::byte> region(std::size_t bytes, os::SharedMemory::Pages pages, Deadline deadline) {
    const std::string key = makers_key("region", regions_.size());
    if (makes_memory()) {
      offer(key, [&]() -> os::SharedMemory& {
        return regions_.emplace_back(os::SharedMemory::create(bytes, pages));
      });
    } else {
      regions_.push_back(taken(key, pages, deadline));
    }
    check_size(regions_.back().size(), bytes);
    return {regions_.back().data(), bytes};
  }

  /// Hands what `make` makes to the others of this host, or tells them why it cannot.
  template <class Make>
  void offer(const std::string& key, Make&& make) {
    try {
      const os::SharedMemory& memory = make();
      store_->give(key, memory, ranks_here() - 1);
      store_->set(key, kMade);
    } catch (const Error& error) {
      store_->set(key, error.what());
      throw;
    }
  }

  os::SharedMemory taken(const std::string& key, os::SharedMemory::Pages pages, Deadline deadline) {
    // Who was to make it could not: that one's reason is everybody's.
    if (const std::string said = store_->get(key, deadline); said != kMade) {
      throw Error(ErrorCode::no_space, said).about_rank(first_here());
    }
    return store_->take(key, pages, deadline);
  }

  void check_size(std::size_t size, std::size_t needed) const {
    if (size == needed) return;
    fail(ErrorCode::invalid,
         "rank {} needs {} bytes of shared memory but rank {} made {}: their models differ", rank(),
         needed, first_here(), size);
  }

  EngineOptions options_;
  std::unique_ptr<cluster::Store> store_;
  std::vector<RankHere> ranks_;  // By rank.
  std::vector<pid_t> pids_;      // The same, for PeerWatch.
  GroupKeys keys_;
  std::vector<os::SharedMemory>
      regions_;                      // They live as long as the engine; numbered by their keys.
  std::size_t lasting_regions_ = 0;  // Number of the next key; who holds them is the caller.
};

std::string pid_key(const cluster::Store& store, int rank) {
  return "pid" + store.mark_of_rank(rank);
}

pid_t pid_of(int rank, cluster::Store& store, Deadline deadline) {
  const std::string text = store.get(pid_key(store, rank), deadline);
  const auto pid = parse_integer(text, 1, std::numeric_limits<pid_t>::max());
  if (!pid) {
    fail(ErrorCode::corrupt, "rank {} says that its process is \"{}\"", rank, excerpt(text));
  }
  return static_cast<pid_t>(*pid);
}

/// Each rank of the world tells its process id; those of other hosts are not asked.
std::vector<RankHere> find_ranks_here(const Peers& peers, cluster::Store& store,
                                      Deadline deadline) {
  store.set(pid_key(store, peers.rank), std::to_string(::getpid()));
  const int host = peers.hosts[static_cast<std::size_t>(peers.rank)];
  std::vector<RankHere> ranks;
  for (int rank = 0; rank < peers.world(); ++rank) {
    const bool here = peers.hosts[static_cast<std::size_t>(rank)] == host;
    ranks.push_back({here, here ? pid_of(rank, store, deadline) : ::getpid()});
  }
  return ranks;
}

}  // namespace

std::unique_ptr<Engine> make_shm_engine(const EngineOptions& options, const Peers& peers,
                                        cluster::Store& store, Deadline deadline) {
  const int host = peers.hosts[static_cast<std::size_t>(peers.rank)];
  return std::make_unique<ShmEngine>(
      options, std::make_unique<cluster::PrefixStore>(store, "host/" + std::to_string(host) + "/"),
      find_ranks_here(peers, store, deadline));
}

}  // namespace cohort::transport
