#include "chaos/faults/disturbance.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/files.h"

namespace cohort::chaos {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr auto kPeriod = 100ms;
constexpr auto kStoppedPart = 90ms;

/// What the library makes when it keeps somebody waiting.
fs::path note_of(const fs::path& gate) {
  return gate.string() + ".waiting";
}

}  // namespace

// A process is held by a descriptor of the kernel's, not by its number: numbers are used again, and
// a signal that comes too late must not hit a stranger.
HeldProcess::HeldProcess(pid_t pid)
    : handle_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {}

bool HeldProcess::signal(int signal) const {
  return handle_ && ::syscall(SYS_pidfd_send_signal, handle_.get(), signal, nullptr, 0) == 0;
}

bool HeldProcess::has_ended() const {
  pollfd ended{.fd = handle_.get(), .events = POLLIN, .revents = 0};
  return !handle_ || ::poll(&ended, 1, 0) > 0;
}

Disturbance::Disturbance(pid_t pid, Kind kind, double seconds)
    : process_(pid), kind_(kind), end_(Deadline::in_seconds(seconds)) {
  tick();
}

Disturbance::~Disturbance() {
  if (stopped_) process_.signal(SIGCONT);
}

// Frozen is stopped all the time; slow is stopped for most of every tenth of a second, and so makes
// a tenth of its steps, as a machine does that somebody else uses.
void Disturbance::tick() {
  if (over_) return;
  over_ = end_.passed() || process_.has_ended();
  const bool stop =
      !over_ && (kind_ == Kind::freeze || (Clock::now() - start_) % kPeriod < kStoppedPart);
  set_stopped(stop);
}

void Disturbance::set_stopped(bool stopped) {
  if (stopped == stopped_) return;
  stopped_ = stopped;
  process_.signal(stopped ? SIGSTOP : SIGCONT);
}

SlowDisk::SlowDisk(const fs::path& library, const fs::path& run_dir)
    : gate_(fs::absolute(run_dir).string() + ".gate") {
  if (library.empty()) return;
  // The library compares with names as the kernel tells them.
  const fs::path real = fs::weakly_canonical(fs::absolute(run_dir));
  environment_ = {"LD_PRELOAD=" + fs::absolute(library).string(),
                  "SLOW_DISK_FOLDER=" + (real / "checkpoints").string(),
                  "SLOW_DISK_GATE=" + gate_.string()};
}

// The gate is a file: while it is there, the library that is loaded into the training's processes
// lets writes to the checkpoints' folder wait, and leaves a note that somebody does. So a fault can
// be done in the middle of a checkpoint, however fast the disk is.
void SlowDisk::hold() {
  fs::remove(note_of(gate_));
  write_file_atomically(gate_, "");
}

bool SlowDisk::keeps_waiting() const {
  return fs::exists(note_of(gate_));
}

void SlowDisk::release() noexcept {
  std::error_code ignored;
  fs::remove(gate_, ignored);
  fs::remove(note_of(gate_), ignored);
}

}  // namespace cohort::chaos
