#pragma once

#include <unistd.h>

#include <utility>

namespace cohort {

/// A file descriptor that is closed with its owner; none (-1) when made without one or moved from.
/// A failed system call's -1 may be handed to the constructor: the object is then false, and errno
/// is untouched. Assigning exchanges the two, so what this had is closed with the other.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~UniqueFd() {
    if (fd_ >= 0) ::close(fd_);
  }

  int get() const { return fd_; }
  /// The caller closes it from now on.
  int release() { return std::exchange(fd_, -1); }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

}  // namespace cohort
