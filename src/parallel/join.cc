#include <cohort/group.h>

#include <cstdlib>
#include <utility>

#include "base/fail.h"
#include "kernel/fast_settings.h"
#include "meet/process_settings.h"
#include "meet/rendezvous.h"
#include "meet/store_of_this_host.h"
#include "os/cores.h"
#include "os/this_process.h"
#include "parallel/group_state.h"
#include "parallel/last_words.h"
#include "transport/inproc/inproc.h"

namespace cohort {
namespace {

/// From here on the ranks of a run prove and find each other:
///
///   1. the launcher's variables say which rank this is and where all meet (cluster/launch_environment.h)
///   2. rank 0 serves the run's store, all connect to it, each proving that it knows the run's secret
///   3. who shares a host finds that out, takes its share of the cores, and meets in a store of that
///      host, over which memory is handed
///   4. all agree on an engine and make it
///
/// It stays for as long as the group does, since groups are split off later, and ranks tell each other
/// over the store what goes wrong.
class Meeting {
 public:
  Meeting(const cluster::LaunchEnvironment& environment, const JoinOptions& options)
      : rendezvous_(environment), self_{cluster::Member::Role::worker, environment.rank} {
    const int cores = os::usable_cores();  // Before this rank is bound to some of them.
    const Deadline deadline = Deadline::in_seconds(options.timeout_seconds);
    rendezvous_.serve();
    all_ = rendezvous_.connect(self_, deadline);
    place_ = meet::local_place(*all_, environment.rank, environment.world, deadline);
    if (!all_->local_address().empty()) {
      here_.emplace(*all_, place_.local_rank == 0, self_, deadline);
    }
    engine_ = transport::make_engine({.name = options.engine,
                                      .rank = environment.rank,
                                      .world = environment.world,
                                      .address = all_->local_address(),
                                      .cores = cores},
                                     here_ ? here_->store() : *all_, deadline);
  }

  const os::LocalPlace& place() const { return place_; }

  /// To be called once. The engine must go before this.
  std::shared_ptr<transport::Engine> take_engine() { return std::move(engine_); }

  /// Another connection to the store, for one user of it. Any thread.
  std::unique_ptr<cluster::Store> connect(Deadline deadline) const {
    return rendezvous_.connect(self_, deadline);
  }

 private:
  meet::Rendezvous rendezvous_;
  const cluster::Member self_;
  std::unique_ptr<cluster::SocketStore> all_;
  std::optional<meet::StoreOfThisHost> here_;
  os::LocalPlace place_;
  std::shared_ptr<transport::Engine> engine_;
};

/// Where a rank that was started alone meets itself.
struct Alone {
  cluster::MemoryStore store;
  transport::InprocHub hub{1};
};

void check(const JoinOptions& options) {
  if (!(options.timeout_seconds > 0) || options.timeout_seconds > 1e8) {
    fail(ErrorCode::invalid, "JoinOptions::timeout_seconds must be above 0");
  }
  if (options.threads < 0) fail(ErrorCode::invalid, "JoinOptions::threads must not be negative");
}

/// Whoever started this rank (cohort run, mpirun) may have bound it already: what it may use is its
/// own share then.
void take_share(const JoinOptions& options, const os::LocalPlace& place) {
  meet::keep_large_blocks();
  const auto get = [](const char* name) { return std::getenv(name); };
  if (options.pin && !os::is_bound() && place.local_workers > 1) os::bind_to_share(place);
  const int share =
      os::is_bound() ? os::usable_cores() : std::max(1, os::usable_cores() / place.local_workers);
  meet::compute_with(options.threads > 0 ? options.threads
                                         : kernel::chosen_threads(get).value_or(share));
}

group::CommunicatorOptions communicator_options(const JoinOptions& options, int cores) {
  return {.timeout = std::chrono::duration<double>(options.timeout_seconds), .cores = cores};
}

Group join_alone(const JoinOptions& options) {
  take_share(options, {});
  const auto alone = std::make_shared<Alone>();
  group::Membership membership{.engine = alone->hub.engine(0), .connect = [alone] {
                                 return std::make_unique<cluster::PrefixStore>(alone->store,
                                                                               "board/");
                               }};
  return parallel::GroupAccess::make(std::make_shared<group::Communicator>(
                                         std::move(membership), communicator_options(options, 1)),
                                     alone);
}

}  // namespace

Group join(const JoinOptions& options) {
  check(options);
  parallel::end_with_last_words();
  auto environment =
      cluster::launch_environment([](const char* name) { return std::getenv(name); });
  if (!environment || environment->world == 1) return join_alone(options);
  environment->insecure = environment->insecure || options.insecure;
  cluster::check_trust(*environment);
  const int cores = os::usable_cores();
  const auto meeting = std::make_shared<Meeting>(*environment, options);
  take_share(options, meeting->place());
  const Timeout timeout = std::chrono::duration<double>(options.timeout_seconds);
  group::Membership membership{.engine = meeting->take_engine(), .connect = [meeting, timeout] {
                                 return meeting->connect(timeout.deadline());
                               }};
  return parallel::GroupAccess::make(
      std::make_shared<group::Communicator>(std::move(membership),
                                            communicator_options(options, cores)),
      meeting);
}

}  // namespace cohort
