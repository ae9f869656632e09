#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "cluster/socket_store.h"
#include "os/memory.h"
#include "transport/composed/composed.h"
#include "transport/gloo/gloo.h"
#include "transport/inproc/inproc.h"
#include "transport/ranks_test_support.h"
#include "transport/shm/shm.h"

namespace cohort::transport {

/// For tests: a Meeting for every transport.

class InprocMeeting : public Meeting {
 public:
  explicit InprocMeeting(int size) : transports_(make_inproc_group(size)) {}

  void begin(const std::vector<pid_t>&) override {}
  std::unique_ptr<Transport> connect(int rank) override {
    return std::move(transports_[static_cast<std::size_t>(rank)]);
  }

 private:
  std::vector<std::unique_ptr<Transport>> transports_;
};

/// Ranks that share a region of this process, which forked ones inherit. Each waits until all watch
/// the processes of all, so that none can end unseen.
class ShmMeeting : public Meeting {
 public:
  ShmMeeting(int size, ShmOptions options)
      : size_(size),
        options_(options),
        region_(os::SharedMemory::create(shm_bytes_needed(size, options))),
        processes_(os::SharedMemory::create(sizeof(Processes))) {}

  void begin(const std::vector<pid_t>& pids) override {
    std::copy(pids.begin(), pids.end(), processes().pids);
    processes().count = static_cast<int>(pids.size());
    processes().known = true;
    processes().changed.notify();
  }

  std::unique_ptr<Transport> connect(int rank) override {
    wait_for([&] { return processes().known.load(); });
    const std::vector<pid_t> pids(processes().pids, processes().pids + processes().count);
    os::PeerWatch watch(pids);
    ++processes().watching;
    processes().changed.notify();
    wait_for([&] { return processes().watching == size_; });  // Nobody ends before.
    return make_shm_transport(rank, size_, {region_.data(), region_.size()}, std::move(watch),
                              options_);
  }

 private:
  struct Processes {
    std::atomic<bool> known;
    std::atomic<int> watching;
    os::SharedEvent changed;
    int count;
    pid_t pids[8];
  };

  template <class Ready>
  void wait_for(Ready&& ready) {
    os::SharedWait(os::WaitPolicy())
        .until(processes().changed, ready, Deadline::in_seconds(60), [] {});
  }

  Processes& processes() { return *reinterpret_cast<Processes*>(processes_.data()); }

  int size_;
  ShmOptions options_;
  os::SharedMemory region_;
  os::SharedMemory processes_;
};

class GlooMeeting : public Meeting {
 public:
  explicit GlooMeeting(int size) : size_(size), server_(cluster::Pass::draw()) {}

  void begin(const std::vector<pid_t>&) override { server_.start(); }

  std::unique_ptr<Transport> connect(int rank) override {
    cluster::SocketStore store(server_.endpoint(), server_.pass(), Deadline::in_seconds(60),
                               {.number = rank});
    return make_gloo_transport(rank, size_, store, {.bind_address = store.local_address()});
  }

 private:
  int size_;
  cluster::StoreServer server_;
};

/// Ranks of several hosts, as far as they know.
class ComposedMeeting : public Meeting {
 public:
  using HostOf = int (*)(int rank);

  ComposedMeeting(int size, HostOf host_of)
      : size_(size),
        host_of_(host_of),
        server_(cluster::Pass::draw()),
        ends_(static_cast<std::size_t>(size)) {}

  void begin(const std::vector<pid_t>&) override { server_.start(); }

  std::unique_ptr<Transport> connect(int rank) override {
    const Deadline deadline = Deadline::in_seconds(60);
    Peers peers{.rank = rank, .hosts = {}};
    for (int i = 0; i < size_; ++i) peers.hosts.push_back(host_of_(i));
    End& end = ends_[static_cast<std::size_t>(rank)];
    end.store = std::make_unique<cluster::SocketStore>(server_.endpoint(), server_.pass(), deadline,
                                                       cluster::Member{.number = rank});
    const EngineOptions options{
        .name = "", .rank = rank, .world = size_, .address = "127.0.0.1", .cores = 2};
    end.engine = make_composed_engine(options, peers, *end.store, deadline);
    return end.engine->connect(deadline);
  }

 private:
  struct End {
    std::unique_ptr<cluster::SocketStore> store;
    std::unique_ptr<Engine> engine;
  };

  int size_;
  HostOf host_of_;
  cluster::StoreServer server_;
  std::vector<End> ends_;
};

}  // namespace cohort::transport
