#include <cohort/group.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <utility>

#include "base/fail.h"
#include "cluster/exit_code.h"
#include "kernel/fast_settings.h"
#include "meet/attendance.h"
#include "meet/process_settings.h"
#include "meet/rendezvous.h"
#include "meet/this_host.h"
#include "os/cores.h"
#include "parallel/group_state.h"
#include "transport/inproc/inproc.h"

namespace cohort {
namespace {

/// From here on the ranks of a run prove and find each other:
///
///   1. the launcher's variables say which rank this is and where all meet (cluster/launch_environment.h)
///   2. rank 0 serves the run's store, all connect to it, each proving that it knows the run's secret
///   3. who shares a host finds that out, and what its share of the cores is, and meets in a store of
///      that host, over which memory is handed
///   4. all agree on an engine and make it
///
/// It stays for as long as the group does, since groups are split off later, and ranks tell each other
/// over the store what goes wrong. So who serves a store stays until nobody needs it any more.
class Meeting {
 public:
  Meeting(const cluster::LaunchEnvironment& environment, const JoinOptions& options)
      : rendezvous_(environment), self_{cluster::Member::Role::worker, environment.rank} {
    const Deadline deadline = Deadline::in_seconds(options.timeout_seconds);
    rendezvous_.serve();
    all_ = rendezvous_.connect(self_, deadline);
    share_ = meet::find_host_share(*all_, environment.rank, environment.world, deadline);
    if (!all_->local_address().empty()) {
      here_.emplace(*all_, share_.place.local_rank == 0, self_, deadline);
    }
    engine_ = transport::make_engine({.name = options.engine,
                                      .rank = environment.rank,
                                      .world = environment.world,
                                      .address = all_->local_address(),
                                      .cores = share_.cores_of_all},
                                     here_ ? here_->store() : *all_, deadline);
    find_served();
    attendance_.emplace(rendezvous_.connect(self_, deadline), environment.rank);
  }

  // What went wrong shall be known at once, so there others only get the time to hear of it.
  ~Meeting() {
    const bool all_is_well = !has_failed_ && std::uncaught_exceptions() == 0;
    attendance_->await_others(served_, Deadline::in(all_is_well ? kAsLongAsTheyLive : kHearing));
  }
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  /// Something is wrong in one of its groups. Any thread.
  void note_failure() { has_failed_ = true; }

  const meet::HostShare& share() const { return share_; }

  /// To be called once. The engine must go before this.
  std::shared_ptr<transport::Engine> take_engine() { return std::move(engine_); }

  /// Another connection to the store, for one user of it. Any thread.
  std::unique_ptr<cluster::Store> connect(Deadline deadline) const {
    return rendezvous_.connect(self_, deadline);
  }

 private:
  /// Rank 0 serves all, and the first rank of every other host those of its host.
  void find_served() {
    const std::vector<int>& hosts = engine_->hosts();
    const int self = engine_->rank();
    for (int rank = 0; rank < engine_->world(); ++rank) {
      const bool is_here =
          hosts[static_cast<std::size_t>(rank)] == hosts[static_cast<std::size_t>(self)];
      if (self == 0 || (share_.place.local_rank == 0 && is_here)) served_.push_back(rank);
    }
  }

  static constexpr Duration kAsLongAsTheyLive = std::chrono::hours(24 * 365);
  static constexpr Duration kHearing = std::chrono::seconds(2);

  meet::Rendezvous rendezvous_;
  const cluster::Member self_;
  std::unique_ptr<cluster::SocketStore> all_;
  std::optional<meet::StoreOfThisHost> here_;
  meet::HostShare share_;
  std::shared_ptr<transport::Engine> engine_;
  std::vector<int> served_;  // Ranks that need a store of this process.
  std::atomic<bool> has_failed_ = false;
  std::optional<meet::Attendance> attendance_;
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

/// One thread for every core of its own.
void compute_on(const std::vector<int>& cores, const JoinOptions& options) {
  const auto get = [](const char* name) { return std::getenv(name); };
  const int share = std::max(1, static_cast<int>(cores.size()));
  if (options.keep_memory) meet::keep_large_blocks();
  if (options.pin) os::run_on_cores(cores);
  meet::compute_with(options.threads > 0 ? options.threads
                                         : kernel::chosen_threads(get).value_or(share));
}

group::CommunicatorOptions communicator_options(const JoinOptions& options, int cores) {
  return {.timeout = std::chrono::duration<double>(options.timeout_seconds), .cores = cores};
}

Group join_alone(const JoinOptions& options) {
  compute_on(os::usable_core_numbers(), options);
  const auto alone = std::make_shared<Alone>();
  group::Membership membership{
      .connect = [alone] { return std::make_unique<cluster::PrefixStore>(alone->store, "board/"); },
      .engine = alone->hub.engine(0)};
  return parallel::GroupAccess::make(std::make_shared<group::Communicator>(
                                         std::move(membership), communicator_options(options, 1)),
                                     alone);
}

}  // namespace

Group join(const JoinOptions& options) {
  check(options);
  cluster::end_with_last_words();
  auto environment =
      cluster::launch_environment([](const char* name) { return std::getenv(name); });
  if (!environment || environment->world == 1) return join_alone(options);
  environment->insecure = environment->insecure || options.insecure;
  cluster::check_trust(*environment);
  const auto meeting = std::make_shared<Meeting>(*environment, options);
  compute_on(meeting->share().cores, options);
  const Timeout timeout = std::chrono::duration<double>(options.timeout_seconds);
  group::Membership membership{
      .connect = [meeting, timeout] { return meeting->connect(timeout.deadline()); },
      .engine = meeting->take_engine(),
      .store_rank = 0,
      .on_failure = [meeting] { meeting->note_failure(); }};
  return parallel::GroupAccess::make(
      std::make_shared<group::Communicator>(
          std::move(membership), communicator_options(options, meeting->share().cores_of_all)),
      meeting);
}

}  // namespace cohort
