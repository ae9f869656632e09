#pragma once

#include <cohort/error.h>

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "base/deadline.h"

namespace cohort::checkpoint {

/// A thread that writes one thing at a time while the owner goes on. It leaves the processor and
/// the disk to others where they want them. Started with the first job, so that a process that
/// never writes has no thread more. Only the owner's thread calls it.
///
///   start(job) ──▶ busy() ──▶ … the job runs … ──▶ !busy(), take_result() once
class BackgroundWriter {
 public:
  /// Writes, and returns where to. What it throws becomes the result.
  using Job = std::function<std::filesystem::path()>;

  struct Result {
    std::filesystem::path path = {};    ///< Of what was written.
    std::optional<Error> failure = {};  ///< Then nothing was.
    double seconds = 0;
  };

  BackgroundWriter() = default;
  /// Waits until a job that was started has ended.
  ~BackgroundWriter();
  BackgroundWriter(const BackgroundWriter&) = delete;
  BackgroundWriter& operator=(const BackgroundWriter&) = delete;

  /// The job begins soon. Not while busy(). What it uses must stay until it has ended.
  void start(Job job);

  bool busy() const;

  /// Returns once no job is going on; false where that is not before the deadline.
  bool wait(Deadline deadline) const;

  /// What became of the last job that has ended, once.
  std::optional<Result> take_result();

 private:
  void run();

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  Job job_;  // Guarded by mutex_, like the three below.
  bool busy_ = false;
  bool ending_ = false;
  std::optional<Result> result_;
  std::thread thread_;
};

}  // namespace cohort::checkpoint
