#pragma once

#include <cstdint>
#include <string>

#include "base/deadline.h"
#include "base/unique_fd.h"

namespace cohort::os {

/// Plain TCP, between hosts (os/endpoint.h), and for finding an address that others can reach.
/// All sockets are non-blocking, without Nagle's delay once connected, and not passed on by exec():
/// who wants to wait calls wait_for_socket() and tries again. Errors name host and port.

/// "host:port", with brackets around an IPv6 address.
std::string host_and_port(const std::string& host, std::uint16_t port);

/// A socket that listens on `address` (a name or number of this host); port 0 lets the kernel pick.
/// Throws Error(io) where the port is taken or the address not of this host.
UniqueFd listen_on(const std::string& address, std::uint16_t port);

/// Connects, trying again until the deadline because the other side may start later; then throws
/// Error(timeout) with the last reason.
UniqueFd connect_to(const std::string& host, std::uint16_t port, Deadline deadline);

/// Tries once; none, and the reason, where that is in vain.
UniqueFd connect_once(const std::string& host, std::uint16_t port, Deadline deadline,
                      std::string& reason);

/// This end of a socket: the address in numbers, and the port.
std::string own_address(const UniqueFd& socket);
std::uint16_t own_port(const UniqueFd& socket);

/// Waits until `events` (as of poll) can be done on the socket, or it is broken, which the next
/// call on it will tell; false when the deadline passed.
bool wait_for_socket(const UniqueFd& socket, short events, Deadline deadline);

}  // namespace cohort::os
