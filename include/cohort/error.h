#pragma once

#include <optional>
#include <stdexcept>
#include <string>

namespace cohort {

/// What went wrong, as far as a caller may want to react to it.
enum class ErrorCode {
  invalid,      ///< The request itself is wrong: a job file, an option, a shape. Exit code 2.
  unsupported,  ///< Right, but this build or machine cannot do it.
  not_found,    ///< A file or a name that is not there.
  corrupt,      ///< Data that fails its checks: truncated, wrong checksum, wrong magic.
  io,           ///< The operating system refused a read, a write or a connection.
  no_space,     ///< No room left on a disk or in shared memory.
  timeout,      ///< A peer did not answer before the deadline.
  peer_lost,    ///< A peer closed, died or was declared lost. A retry may help: exit code 138.
  diverged,     ///< The loss is not a finite number any more.
  cancelled,    ///< The user asked to stop.
};

/// The one exception Cohort throws on purpose. `what()` is a whole sentence for the user.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}

  /// The rank the error is about, where one is to blame.
  Error& about_rank(int rank) {
    rank_ = rank;
    return *this;
  }

  ErrorCode code() const { return code_; }
  std::optional<int> rank() const { return rank_; }

  /// The same error with words before it that say what was being done, innermost last.
  Error with_context(const std::string& doing) const {
    Error wider(code_, doing + ": " + what());
    wider.rank_ = rank_;
    return wider;
  }

 private:
  ErrorCode code_;
  std::optional<int> rank_;
};

}  // namespace cohort
