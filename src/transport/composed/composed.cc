#include "transport/composed/composed.h"

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include "cluster/store.h"
#include "transport/gloo/gloo.h"
#include "transport/rank_group.h"
#include "transport/shm/shm.h"

namespace cohort::transport {
namespace {

/// Knows which of the two transports has begun it.
struct ComposedOperation : Operation {
  ComposedOperation(Transport& by, OperationPtr operation) : way(by), inner(std::move(operation)) {}

  Transport& way;
  OperationPtr inner;
};

/// A thread that waits, so that the one that would can do something else meanwhile. One operation
/// at a time: the transport's thread puts it into work_, this thread waits for it and takes it out
/// again, with the failure if there was one. Its wait ends by itself: at the deadline, or when the
/// transport is closed.
class Waiter {
 public:
  /// Waits in `transport` for the operation and throws what that throws. Until then it calls
  /// `meanwhile`, again and again while that returns true: there is more to do.
  template <class Meanwhile>
  void wait(Transport& transport, Operation& operation, Deadline deadline, Meanwhile&& meanwhile) {
    constexpr auto kPause = std::chrono::microseconds(50);
    std::unique_lock lock(mutex_);
    failure_ = nullptr;
    work_ = [&transport, &operation, deadline] { transport.wait(operation, deadline); };
    changed_.notify_all();
    while (work_) {
      lock.unlock();
      const bool again = meanwhile();
      lock.lock();
      const auto is_done = [this] { return !work_; };
      if (again) {
        changed_.wait_for(lock, kPause, is_done);
      } else {
        changed_.wait(lock, is_done);
      }
    }
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void run(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [this] { return static_cast<bool>(work_); })) {
      lock.unlock();
      std::exception_ptr failure;
      try {
        work_();
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      failure_ = failure;
      work_ = nullptr;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;  // Guards work_ and failure_.
  std::condition_variable_any changed_;
  std::function<void()> work_;  // Empty: nothing to wait for.
  std::exception_ptr failure_;
  std::jthread thread_{[this](const std::stop_token& stop) { run(stop); }};  // Last: it ends first.
};

/// Two transports of the same ranks; which of them a message takes follows from the hosts of its
/// two ends, so both ends agree without asking.
///
/// The difficulty is waiting. Bytes in shared memory move only while a rank is inside a call of its
/// transport, those of TCP move by themselves. A rank that slept in TCP's wait while a rank of its
/// own host waits for the rest of a message would stop that one, and with it perhaps the very rank
/// it waits for itself. So where something is under way inside the host, a Waiter waits for TCP,
/// and this thread goes on moving bytes inside, until the wait is over. Where nothing is, it waits
/// for TCP itself, and there is no Waiter.
class ComposedTransport : public Transport {
 public:
  /// Both know all ranks; `inside` is used for those of this host, `outside` for the others.
  /// `hosts`: the host of every rank, by number.
  ComposedTransport(std::unique_ptr<Transport> inside, std::unique_ptr<Transport> outside,
                    std::vector<int> hosts)
      : inside_(std::move(inside)), outside_(std::move(outside)), hosts_(std::move(hosts)) {}

  ~ComposedTransport() override { ComposedTransport::close(); }

  int rank() const override { return outside_->rank(); }
  int size() const override { return outside_->size(); }

  OperationPtr isend(int peer, Tag tag, std::span<const std::byte> bytes) override {
    Transport& way = way_to(peer);
    return std::make_unique<ComposedOperation>(way, way.isend(peer, tag, bytes));
  }

  OperationPtr irecv(int peer, Tag tag, std::span<std::byte> bytes) override {
    Transport& way = way_to(peer);
    return std::make_unique<ComposedOperation>(way, way.irecv(peer, tag, bytes));
  }

  void wait(Operation& operation, Deadline deadline) override {
    auto& composed = static_cast<ComposedOperation&>(operation);
    Transport& way = composed.way;
    if (&way == inside_.get() || !inside_->progress()) return way.wait(*composed.inner, deadline);
    if (!waiter_) waiter_.emplace();
    waiter_->wait(way, *composed.inner, deadline, [this] { return inside_->progress(); });
  }

  bool progress() noexcept override { return inside_->progress(); }

  void close() noexcept override {
    inside_->close();
    outside_->close();
  }

  Traffic traffic() const override { return inside_->traffic() + outside_->traffic(); }

 private:
  /// A number that is no rank is refused by either.
  Transport& way_to(int peer) const {
    const bool exists = peer >= 0 && peer < size();
    return exists && host_of(peer) == host_of(rank()) ? *inside_ : *outside_;
  }

  int host_of(int rank) const { return hosts_[static_cast<std::size_t>(rank)]; }

  std::unique_ptr<Transport> inside_;
  std::unique_ptr<Transport> outside_;
  std::vector<int> hosts_;
  std::optional<Waiter> waiter_;  // Made when it is needed; ends before what it waits in.
};

/// One engine of each kind, both over all ranks. Groups of one host and groups of one rank per host
/// need only one of the two, and get that.
class ComposedEngine : public Engine {
 public:
  /// Both know all ranks; `inside` sends only to those of this host.
  ComposedEngine(const EngineOptions& options, const Peers& peers,
                 std::unique_ptr<cluster::Store> store, Deadline deadline)
      : Engine({.name = "shm+gloo",
                .rank = options.rank,
                .hosts = peers.hosts,
                .address = options.address,
                .sends_in_background = true}),
        options_(options),
        store_(std::move(store)),
        inside_(make_shm_engine(options_, peers, *store_, deadline)),
        outside_(make_gloo_engine(options_, peers, *store_, deadline)) {}

  SharedRegions* shared_regions() override { return nullptr; }

  std::unique_ptr<Transport> connect(Deadline deadline) override {
    // One after the other on every rank, or two ranks might wait for each other.
    auto inside = inside_->connect(deadline);
    return std::make_unique<ComposedTransport>(std::move(inside), outside_->connect(deadline),
                                               hosts());
  }

  std::unique_ptr<Engine> group(std::span<const int> ranks, Deadline deadline) override {
    const RankGroup group(ranks, rank(), world());
    const Peers peers{.rank = group.rank(), .hosts = group.hosts_among(hosts())};
    if (peers.elsewhere() < 0) return inside_->group(ranks, deadline);
    if (!peers.any_share_a_host()) return outside_->group(ranks, deadline);
    EngineOptions options = options_;
    options.rank = group.rank();
    options.world = group.world();
    return std::make_unique<ComposedEngine>(
        options, peers,
        std::make_unique<cluster::PrefixStore>(*store_, keys_.next(group), nullptr, group.ranks()),
        deadline);
  }

 private:
  EngineOptions options_;
  std::unique_ptr<cluster::Store> store_;
  std::unique_ptr<Engine> inside_;
  std::unique_ptr<Engine> outside_;
  GroupKeys keys_;  // Of the composed groups alone; the two engines count theirs.
};

}  // namespace

std::unique_ptr<Engine> make_composed_engine(const EngineOptions& options, const Peers& peers,
                                             cluster::Store& store, Deadline deadline) {
  return std::make_unique<ComposedEngine>(
      options, peers, std::make_unique<cluster::PrefixStore>(store, "composed/"), deadline);
}

}  // namespace cohort::transport
