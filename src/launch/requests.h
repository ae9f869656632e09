#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

#include "base/deadline.h"
#include "os/signal_watch.h"

namespace cohort::launch {

/// What somebody outside wants of a running launcher.
struct RunRequest {
  enum class Kind {
    stop,     ///< To save and end; asked for twice, to end at once.
    workers,  ///< To go on with another number of workers.
  };
  Kind kind = Kind::stop;
  int signal = 0;   ///< Of a stop: what it was asked for with; the run's exit code follows from it.
  int workers = 0;  ///< How many.
};

/// Where requests come from: people and other programs, whichever way they have. The launcher asks
/// here and nowhere else.
class Requests {
 public:
  virtual ~Requests() = default;

  /// The next one, or nothing after `at_most`; or nothing earlier, when a process may have ended.
  virtual std::optional<RunRequest> wait(std::chrono::milliseconds at_most) = 0;

  /// Tells whoever made the last request for workers what comes of it.
  virtual void answer(const std::string& text) = 0;
};

/// The requests of a run in its own process. Without a run folder there are only signals.
///
///   way                         request                         answer
///   SIGINT (Ctrl-C), SIGTERM,   stop; a second signal: at once  –
///   SIGUSR1, SIGHUP
///   file control/workers        that many workers               file control/answer
///
/// The files are of the run folder, and ask_for_workers() is their other end. Each is written whole
/// under another name and then renamed; the reader removes the request, the asker an old answer.
class UserRequests : public Requests {
 public:
  /// Make it before other threads start; see SignalWatch. Forgets what an earlier run in the folder
  /// was asked.
  explicit UserRequests(std::filesystem::path run_dir);

  std::optional<RunRequest> wait(std::chrono::milliseconds at_most) override;
  void answer(const std::string& text) override;

 private:
  std::optional<RunRequest> asked_workers();

  std::filesystem::path run_dir_;
  os::SignalWatch signals_;
};

/// From another process: asks the launcher of the run in `run_dir` for so many workers, waits for
/// its answer and returns it. Throws Error where no run goes on there or it does not answer.
std::string ask_for_workers(const std::filesystem::path& run_dir, int workers, Deadline deadline);

}  // namespace cohort::launch
