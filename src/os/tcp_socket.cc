#include "os/tcp_socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>
#include <thread>

#include "base/fail.h"

namespace cohort::os {

namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

/// The addresses of `host`, or none and the reason.
Addresses resolve(const std::string& host, std::uint16_t port, int flags, std::string& reason) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) {
    reason = fmt::format("the name \"{}\" cannot be resolved ({})", host, ::gai_strerror(error));
    found = nullptr;
  }
  return Addresses(found, &::freeaddrinfo);
}

UniqueFd open_socket(const addrinfo& address) {
  UniqueFd fd(::socket(address.ai_family, address.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC,
                       address.ai_protocol));
  if (!fd) fail_errno("Cannot open a socket");
  return fd;
}

std::string words_for(int error_number) {
  return std::generic_category().message(error_number);
}

/// One end of a socket, as getsockname or getpeername say it.
struct End {
  sockaddr_storage address{};
  socklen_t size = sizeof(sockaddr_storage);

  bool operator==(const End& other) const {
    return size == other.size && std::memcmp(&address, &other.address, size) == 0;
  }
};

End own_end(const UniqueFd& socket) {
  End end;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&end.address), &end.size) != 0) {
    fail_errno("Cannot tell the address of a socket");
  }
  return end;
}

/// While nobody listens on a port of this host, the kernel may give that very port to the socket
/// that tries to connect, which then talks to itself.
bool connected_to_itself(const UniqueFd& socket) {
  End peer;
  if (::getpeername(socket.get(), reinterpret_cast<sockaddr*>(&peer.address), &peer.size) != 0) {
    return false;
  }
  return own_end(socket) == peer;
}

/// The connected socket, or none and the reason.
UniqueFd try_connect(const addrinfo& address, Deadline deadline, std::string& reason) {
  UniqueFd socket = open_socket(address);
  int error = 0;
  if (::connect(socket.get(), address.ai_addr, address.ai_addrlen) != 0) error = errno;
  if (error == EINPROGRESS || error == EINTR) {
    if (!wait_for_socket(socket, POLLOUT, deadline)) {
      error = ETIMEDOUT;
    } else {
      socklen_t size = sizeof(error);
      ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    }
  }
  if (error == 0 && connected_to_itself(socket)) error = ECONNREFUSED;
  if (error != 0) {
    reason = words_for(error);
    return UniqueFd();
  }
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  return socket;
}

}  // namespace

std::string host_and_port(const std::string& host, std::uint16_t port) {
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return is_ipv6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

UniqueFd listen_on(const std::string& address, std::uint16_t port) {
  std::string reason;
  const Addresses addresses = resolve(address, port, AI_PASSIVE, reason);
  const std::string where = host_and_port(address, port);
  if (!addresses) fail(ErrorCode::io, "Cannot listen on {}: {}.", where, reason);
  UniqueFd socket = open_socket(*addresses);
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (::bind(socket.get(), addresses->ai_addr, addresses->ai_addrlen) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0) {
    fail_errno("Cannot listen on " + where);
  }
  return socket;
}

UniqueFd connect_once(const std::string& host, std::uint16_t port, Deadline deadline,
                      std::string& reason) {
  constexpr auto kOneAttempt =
      std::chrono::seconds(3);  // A lost packet must not cost all the time.
  const Addresses addresses = resolve(host, port, AI_ADDRCONFIG, reason);
  for (const addrinfo* address = addresses.get(); address; address = address->ai_next) {
    const auto attempt = Deadline::in(std::min<Duration>(kOneAttempt, deadline.remaining()));
    if (UniqueFd socket = try_connect(*address, attempt, reason)) return socket;
  }
  return UniqueFd();
}

UniqueFd connect_to(const std::string& host, std::uint16_t port, Deadline deadline) {
  constexpr auto kPause = std::chrono::milliseconds(20);  // Between two rounds of attempts.
  std::string reason;
  while (true) {
    if (UniqueFd socket = connect_once(host, port, deadline, reason)) return socket;
    if (deadline.passed()) {
      fail(ErrorCode::timeout, "Cannot connect to {} before the deadline: {}.",
           host_and_port(host, port), reason);
    }
    std::this_thread::sleep_for(std::min<Duration>(kPause, deadline.remaining()));
  }
}

std::string own_address(const UniqueFd& socket) {
  const End end = own_end(socket);
  char host[NI_MAXHOST];
  const int error = ::getnameinfo(reinterpret_cast<const sockaddr*>(&end.address), end.size, host,
                                  sizeof(host), nullptr, 0, NI_NUMERICHOST);
  if (error != 0) {
    fail(ErrorCode::io, "Cannot write the address of a socket in numbers: {}.",
         ::gai_strerror(error));
  }
  return host;
}

std::uint16_t own_port(const UniqueFd& socket) {
  const End end = own_end(socket);
  if (end.address.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6&>(end.address).sin6_port);
  }
  return ntohs(reinterpret_cast<const sockaddr_in&>(end.address).sin_port);
}

bool wait_for_socket(const UniqueFd& socket, short events, Deadline deadline) {
  pollfd entry{socket.get(), events, 0};
  while (true) {
    const auto remaining =
        std::chrono::ceil<std::chrono::milliseconds>(deadline.remaining()).count();
    const int ready = ::poll(&entry, 1, static_cast<int>(std::min<long>(remaining, 3'600'000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) fail_errno("Cannot wait for a socket");
    if (deadline.passed()) return false;
  }
}

}  // namespace cohort::os
