#pragma once

#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/unique_fd.h"

namespace cohort::os {

/// Where something listens, as a text: "unix:/run/user/1000/cohort-x3Kq9a/store" for processes of
/// one host and user, "10.0.0.1:29500" for others. Sockets are as in tcp_socket.h: non-blocking, not
/// passed on by exec().

/// The endpoint of a unix socket at `path`.
std::string unix_endpoint(const std::string& path);
bool is_unix(const std::string& endpoint);

struct Listener {
  UniqueFd socket;
  std::string endpoint;  ///< With the port that the kernel picked, where 0 was asked for.
};

/// Throws Error(io) where the place is taken, or not one of this host's.
Listener listen_at(const std::string& endpoint);

/// Connects, trying again until the deadline because the other side may start later; then throws
/// Error(timeout) with the last reason.
UniqueFd connect_at(const std::string& endpoint, Deadline deadline);

/// Tries once; none, and the reason, where that is in vain.
UniqueFd connect_once(const std::string& endpoint, Deadline deadline, std::string& reason);

/// The next connection that waits at the listener; none (and errno) where there is none.
UniqueFd accept_from(const UniqueFd& listener);

/// Of a connected unix socket: whether the process that made the other end is of this user. True
/// for any other socket, which cannot tell.
bool is_of_this_user(const UniqueFd& socket);

/// Sends what the socket takes now, with a descriptor along with the first byte where `descriptor`
/// is not -1 (which a unix socket alone can). Returns as send() does.
ssize_t send_with(const UniqueFd& socket, const std::string& bytes, int descriptor);

/// Appends what has arrived to `bytes`, and to `descriptors` what came along. Returns as recv() does.
ssize_t receive_with(const UniqueFd& socket, std::string& bytes,
                     std::vector<UniqueFd>& descriptors);

}  // namespace cohort::os
