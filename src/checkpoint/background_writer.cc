#include "checkpoint/background_writer.h"

#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

#include "base/fail.h"

namespace cohort::checkpoint {
namespace {

/// Signals are for threads that may be waiting for them.
void leave_signals_to_others() {
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
}

/// The least share of the processor, and the last place among the disk's ordinary users. Where the
/// system refuses, the thread is only more of a nuisance.
void step_back() {
  constexpr int kLeastWeight = 19;
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kLeastWeight);
  const sched_param none{};
  ::sched_setscheduler(0, SCHED_BATCH, &none);
  constexpr int kThisThread = 1;
  constexpr int kBestEffortLast = (2 << 13) | 7;
  ::syscall(SYS_ioprio_set, kThisThread, 0, kBestEffortLast);
}

BackgroundWriter::Result result_of(const BackgroundWriter::Job& job) {
  const auto start = Clock::now();
  BackgroundWriter::Result result;
  try {
    result.path = job();
  } catch (const Error& error) {
    result.failure = error;
  } catch (const std::exception& error) {
    result.failure = Error(ErrorCode::io, error.what());
  }
  result.seconds = seconds_since(start);
  return result;
}

}  // namespace

BackgroundWriter::~BackgroundWriter() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void BackgroundWriter::start(Job job) {
  {
    const std::lock_guard lock(mutex_);
    if (busy_) fail(ErrorCode::invalid, "a second job was started while one is being written");
    busy_ = true;
    job_ = std::move(job);
  }
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  changed_.notify_all();
}

bool BackgroundWriter::busy() const {
  const std::lock_guard lock(mutex_);
  return busy_;
}

bool BackgroundWriter::wait(Deadline deadline) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, deadline.at(), [this] { return !busy_; });
}

std::optional<BackgroundWriter::Result> BackgroundWriter::take_result() {
  const std::lock_guard lock(mutex_);
  return std::exchange(result_, std::nullopt);
}

void BackgroundWriter::run() {
  leave_signals_to_others();
  step_back();
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return busy_ || ending_; });
    if (!busy_) return;
    const Job job = std::exchange(job_, nullptr);
    lock.unlock();
    Result result = result_of(job);
    lock.lock();
    result_ = std::move(result);
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace cohort::checkpoint
