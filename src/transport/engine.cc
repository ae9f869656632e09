#include "transport/engine.h"

#include <unistd.h>

#include <algorithm>
#include <limits>

#include "base/excerpt.h"
#include "base/fail.h"
#include "base/nearest_name.h"
#include "base/parse_integer.h"
#include "cluster/host_id.h"
#include "cluster/shared_memory.h"
#include "cluster/shared_wait.h"
#include "transport/gloo/gloo.h"
#include "transport/shm/shm.h"

namespace cohort {
namespace {

std::string key_of(const std::string& what, int rank) {
  return what + "/" + std::to_string(rank);
}

class ShmEngine : public Engine, public SharedRegions {
 public:
  ShmEngine(const EngineOptions& options, Store& store, Deadline deadline)
      : options_(options), store_(store) {
    store_.set(key_of("pid", options.rank), std::to_string(::getpid()));
    for (int rank = 0; rank < options.world; ++rank) {
      const std::string text = store_.get(key_of("pid", rank), deadline);
      const auto pid = parse_integer(text, 1, std::numeric_limits<pid_t>::max());
      if (!pid) {
        fail(ErrorCode::corrupt, "rank {} says that its process is \"{}\"", rank, excerpt(text));
      }
      pids_.push_back(static_cast<pid_t>(*pid));
    }
  }

  std::string name() const override { return "shm"; }
  int rank() const override { return options_.rank; }
  int world() const override { return options_.world; }
  SharedRegions* shared_regions() override { return this; }
  bool sends_in_background() const override { return false; }
  PeerWatch watch() override { return PeerWatch(pids_); }

  std::span<std::byte> region(std::size_t bytes, Deadline deadline) override {
    return region(bytes, SharedMemory::Pages::reserved, deadline);
  }

  std::unique_ptr<Transport> connect(Deadline deadline) override {
    const ShmOptions shm{.cores = options_.cores};
    const auto memory =
        region(shm_bytes_needed(world(), shm), SharedMemory::Pages::on_use, deadline);
    return make_shm_transport(rank(), world(), memory, watch(), shm);
  }

  std::span<std::byte> lasting_region(std::size_t bytes, std::shared_ptr<SharedMemory>& memory,
                                      Deadline deadline) override {
    const std::string key = "lasting/" + std::to_string(lasting_regions_++);
    if (rank() == 0) {
      offer(key, [&] {
        if (memory) {
          memory->resize(bytes);
        } else {
          memory = std::make_shared<SharedMemory>(SharedMemory::create(bytes));
        }
        return memory->path();
      });
    } else {
      memory = std::make_shared<SharedMemory>(SharedMemory::attach(path_of(key, deadline)));
    }
    check_size(memory->size(), bytes);
    return {memory->data(), bytes};
  }

 private:
  std::span<std::byte> region(std::size_t bytes, SharedMemory::Pages pages, Deadline deadline) {
    const std::string key = "region/" + std::to_string(regions_.size());
    if (rank() == 0) {
      offer(key, [&] {
        regions_.push_back(SharedMemory::create(bytes, pages));
        return regions_.back().path();
      });
    } else {
      regions_.push_back(SharedMemory::attach(path_of(key, deadline), pages));
    }
    check_size(regions_.back().size(), bytes);
    return {regions_.back().data(), bytes};
  }

  /// Tells the others where to find what `make` makes, or why it cannot.
  template <class Make>
  void offer(const std::string& key, Make&& make) {
    try {
      store_.set(key, make());
    } catch (const Error& error) {
      store_.set(key, std::string("!") + error.what());
      throw;
    }
  }

  std::string path_of(const std::string& key, Deadline deadline) {
    const std::string path = store_.get(key, deadline);
    // Rank 0 could not make it: its reason is everybody's.
    if (path.starts_with('!')) throw Error(ErrorCode::no_space, path.substr(1)).about_rank(0);
    return path;
  }

  void check_size(std::size_t size, std::size_t needed) const {
    if (size == needed) return;
    fail(ErrorCode::invalid,
         "rank {} needs {} bytes of shared memory but rank 0 made {}: their models differ", rank(),
         needed, size);
  }

  EngineOptions options_;
  Store& store_;
  std::vector<pid_t> pids_;
  std::vector<SharedMemory> regions_;
  int lasting_regions_ = 0;
};

class GlooEngine : public Engine {
 public:
  GlooEngine(const EngineOptions& options, Store& store) : options_(options), store_(store) {}

  std::string name() const override { return "gloo"; }
  std::string address() const override { return options_.address; }
  int rank() const override { return options_.rank; }
  int world() const override { return options_.world; }
  SharedRegions* shared_regions() override { return nullptr; }
  bool sends_in_background() const override { return true; }

  std::unique_ptr<Transport> connect(Deadline deadline) override {
    GlooOptions gloo;
    gloo.bind_address = options_.address;
    gloo.connect_timeout = deadline.remaining();
    gloo.key_prefix = "gloo/" + std::to_string(connections_++) + "/";
    return make_gloo_transport(rank(), world(), store_, gloo);
  }

 private:
  EngineOptions options_;
  Store& store_;
  int connections_ = 0;
};

/// A rank that is not on this rank's host, or -1.
int rank_elsewhere(const EngineOptions& options, Store& store, Deadline deadline) {
  const auto hosts = hosts_of_ranks(store, options.rank, options.world, deadline);
  const auto& mine = hosts[static_cast<std::size_t>(options.rank)];
  const auto other = std::ranges::find_if(hosts, [&](const auto& host) { return host != mine; });
  return other == hosts.end() ? -1 : static_cast<int>(other - hosts.begin());
}

}  // namespace

const std::vector<std::string>& engine_names() {
  static const std::vector<std::string> names = {"auto", "shm", "gloo", "inproc"};
  return names;
}

std::unique_ptr<Engine> make_engine(const EngineOptions& options, Store& store, Deadline deadline) {
  check_known("engine", options.name, engine_names());
  const int elsewhere = rank_elsewhere(options, store, deadline);
  if (options.name == "shm" && elsewhere >= 0) {
    fail(ErrorCode::unsupported,
         "engine shm needs all workers on one host, but rank {} is on another one; use gloo",
         elsewhere);
  }
  if (options.name == "gloo" || elsewhere >= 0) return std::make_unique<GlooEngine>(options, store);
  return std::make_unique<ShmEngine>(options, store, deadline);
}

}  // namespace cohort
