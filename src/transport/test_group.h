#pragma once

#include <cohort/error.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "cluster/store_server.h"
#include "cluster/tcp_store.h"
#include "os/shared_memory.h"
#include "transport/composed/composed_engine.h"
#include "transport/gloo/gloo.h"
#include "transport/inproc/inproc.h"
#include "transport/shm/shm.h"
#include "transport/transport.h"

namespace cohort {

/// For tests: what the ranks of a group need to find each other. Made before they start.
class Meeting {
 public:
  virtual ~Meeting() = default;

  /// Called in the process that made it, once all ranks run. `pids` is empty where they are
  /// threads.
  virtual void begin(const std::vector<pid_t>& pids) = 0;

  /// Called by each rank.
  virtual std::unique_ptr<Transport> connect(int rank) = 0;
};

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

class ShmMeeting : public Meeting {
 public:
  ShmMeeting(int size, ShmOptions options)
      : size_(size),
        options_(options),
        region_(SharedMemory::create(shm_bytes_needed(size, options))),
        processes_(SharedMemory::create(sizeof(Processes))) {}

  void begin(const std::vector<pid_t>& pids) override {
    std::copy(pids.begin(), pids.end(), processes().pids);
    processes().count = static_cast<int>(pids.size());
    processes().known = true;
    processes().changed.notify();
  }

  std::unique_ptr<Transport> connect(int rank) override {
    wait_for([&] { return processes().known.load(); });
    const std::vector<pid_t> pids(processes().pids, processes().pids + processes().count);
    PeerWatch watch(pids);
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
    SharedEvent changed;
    int count;
    pid_t pids[8];
  };

  template <class Ready>
  void wait_for(Ready&& ready) {
    SharedWait(WaitPolicy()).until(processes().changed, ready, Deadline::in_seconds(60), [] {});
  }

  Processes& processes() { return *reinterpret_cast<Processes*>(processes_.data()); }

  int size_;
  ShmOptions options_;
  SharedMemory region_;
  SharedMemory processes_;
};

class GlooMeeting : public Meeting {
 public:
  explicit GlooMeeting(int size) : size_(size), server_("127.0.0.1", 0) {}

  void begin(const std::vector<pid_t>&) override { server_.start(); }

  std::unique_ptr<Transport> connect(int rank) override {
    TcpStore store("127.0.0.1", server_.port(), Deadline::in_seconds(60));
    return make_gloo_transport(rank, size_, store, {.bind_address = store.local_address()});
  }

 private:
  int size_;
  StoreServer server_;
};

/// Ranks of several hosts, as far as they know.
class ComposedMeeting : public Meeting {
 public:
  using HostOf = int (*)(int rank);

  ComposedMeeting(int size, HostOf host_of)
      : size_(size),
        host_of_(host_of),
        server_("127.0.0.1", 0),
        ends_(static_cast<std::size_t>(size)) {}

  void begin(const std::vector<pid_t>&) override { server_.start(); }

  std::unique_ptr<Transport> connect(int rank) override {
    const Deadline deadline = Deadline::in_seconds(60);
    Peers peers{.rank = rank, .hosts = {}};
    for (int i = 0; i < size_; ++i) peers.hosts.push_back(host_of_(i));
    End& end = ends_[static_cast<std::size_t>(rank)];
    end.store = std::make_unique<TcpStore>("127.0.0.1", server_.port(), deadline);
    const EngineOptions options{
        .name = "", .rank = rank, .world = size_, .address = "127.0.0.1", .cores = 2};
    end.engine = make_composed_engine(options, peers, *end.store, deadline);
    return end.engine->connect(deadline);
  }

 private:
  struct End {
    std::unique_ptr<TcpStore> store;
    std::unique_ptr<Engine> engine;
  };

  int size_;
  HostOf host_of_;
  StoreServer server_;
  std::vector<End> ends_;
};

/// What one rank of a test does.
using RankBody = std::function<void(Transport&)>;

inline void run_rank(Meeting& meeting, int rank, const RankBody& body) {
  try {
    const auto transport = meeting.connect(rank);
    body(*transport);
  } catch (const std::exception& error) {
    ADD_FAILURE() << "rank " << rank << ": " << error.what();
  }
}

inline void run_threads(Meeting& meeting, int size, const RankBody& body) {
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] { run_rank(meeting, rank, body); });
  }
  meeting.begin({});
}

[[noreturn]] inline void be_rank(Meeting& meeting, int rank, const RankBody& body) {
  ::alarm(240);  // A rank that hangs fails its test instead of stopping all.
  run_rank(meeting, rank, body);
  std::fflush(nullptr);
  ::_exit(::testing::Test::HasFailure() ? 1 : 0);
}

/// Runs each rank in a process of its own. The `victims` may die or freeze; they are killed once
/// the others have ended.
inline void run_processes(Meeting& meeting, int size, const RankBody& body,
                          const std::set<int>& victims = {}) {
  std::fflush(nullptr);
  std::vector<pid_t> pids;
  for (int rank = 0; rank < size; ++rank) {
    const pid_t pid = ::fork();
    if (pid == 0) be_rank(meeting, rank, body);
    pids.push_back(pid);
  }
  meeting.begin(pids);
  for (int rank = 0; rank < size; ++rank) {
    if (victims.contains(rank)) continue;
    int status = -1;
    ::waitpid(pids[static_cast<std::size_t>(rank)], &status, 0);
    EXPECT_EQ(status, 0) << "rank " << rank << " failed; its own report is above";
  }
  for (const int rank : victims) {
    ::kill(pids[static_cast<std::size_t>(rank)], SIGKILL);
    ::waitpid(pids[static_cast<std::size_t>(rank)], nullptr, 0);
  }
}

/// A way to run a group; the conformance suite runs on each.
struct TestGroup {
  std::string name;
  std::function<std::unique_ptr<Meeting>(int size)> meet;
  bool processes = false;

  void run(int size, const RankBody& body) const {
    const auto meeting = meet(size);
    processes ? run_processes(*meeting, size, body) : run_threads(*meeting, size, body);
  }
};

}  // namespace cohort
