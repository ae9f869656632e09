#include "os/endpoint.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <thread>

#include "base/fail.h"
#include "base/integers.h"
#include "os/file_lock.h"
#include "os/tcp_socket.h"

namespace cohort::os {
namespace {

constexpr const char* kUnix = "unix:";
constexpr std::size_t kMostDescriptors = 4;  // That one receive takes.

sockaddr_un address_of(const std::string& endpoint) {
  const std::string path = endpoint.substr(std::strlen(kUnix));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    fail(ErrorCode::io, "The path \"{}\" is too long for a socket, or empty.", excerpt(path));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

UniqueFd unix_socket() {
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) fail_errno("Cannot open a socket");
  return socket;
}

struct HostAndPort {
  std::string host;
  std::uint16_t port = 0;
};

HostAndPort split(const std::string& endpoint) {
  const auto colon = endpoint.rfind(':');
  const auto port =
      parse_integer(colon == std::string::npos ? "" : endpoint.substr(colon + 1), 0, 65535);
  if (!port) fail(ErrorCode::invalid, "\"{}\" is not an address with a port.", excerpt(endpoint));
  std::string host = endpoint.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return {host, static_cast<std::uint16_t>(*port)};
}

bool is_listened_at(const sockaddr_un& address) {
  const UniqueFd socket = unix_socket();
  return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) ==
             0 ||
         errno == EAGAIN;  // Too many wait there.
}

/// The file of a socket stays when its process is killed, and goes here; the folder is ours alone.
/// The lock lets nobody remove what another one has made after this one looked.
Listener listen_at_path(const std::string& endpoint) {
  constexpr Duration kPatience = std::chrono::seconds(10);
  const sockaddr_un address = address_of(endpoint);
  UniqueFd socket = unix_socket();
  const FileLock lock(std::filesystem::path(address.sun_path).parent_path() / "listening",
                      Deadline::in(kPatience));
  if (is_listened_at(address)) {
    fail(ErrorCode::io, "Cannot listen on {}: another process listens there.", endpoint);
  }
  ::unlink(address.sun_path);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0) {
    fail_errno("Cannot listen on " + endpoint);
  }
  return {std::move(socket), endpoint};
}

}  // namespace

std::string unix_endpoint(const std::string& path) {
  return kUnix + path;
}

bool is_unix(const std::string& endpoint) {
  return endpoint.starts_with(kUnix);
}

Listener listen_at(const std::string& endpoint) {
  if (is_unix(endpoint)) return listen_at_path(endpoint);
  const auto [host, port] = split(endpoint);
  Listener listener{listen_on(host, port), ""};
  listener.endpoint = host_and_port(host, own_port(listener.socket));
  return listener;
}

UniqueFd connect_once(const std::string& endpoint, Deadline deadline, std::string& reason) {
  if (!is_unix(endpoint)) {
    const auto [host, port] = split(endpoint);
    return connect_once(host, port, deadline, reason);
  }
  const sockaddr_un address = address_of(endpoint);
  UniqueFd socket = unix_socket();
  // The kernel connects at once, or (EAGAIN) has too many waiting there.
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
    return socket;
  }
  reason = std::generic_category().message(errno);
  return UniqueFd();
}

UniqueFd connect_at(const std::string& endpoint, Deadline deadline) {
  constexpr Duration kPause = std::chrono::milliseconds(5);
  std::string reason;
  while (true) {
    if (UniqueFd socket = connect_once(endpoint, deadline, reason)) return socket;
    if (deadline.passed()) {
      fail(ErrorCode::timeout, "Cannot connect to {} before the deadline: {}.", endpoint, reason);
    }
    std::this_thread::sleep_for(std::min(kPause, deadline.remaining()));
  }
}

UniqueFd accept_from(const UniqueFd& listener) {
  UniqueFd socket(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  const int why = errno;
  const int on = 1;
  // Refused by a unix socket, which has no delay.
  if (socket) ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  errno = why;
  return socket;
}

bool is_of_this_user(const UniqueFd& socket) {
  int domain = 0;
  socklen_t size = sizeof(domain);
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0) return false;
  if (domain != AF_UNIX) return true;
  ucred peer{};
  size = sizeof(peer);
  return ::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         peer.uid == ::geteuid();
}

ssize_t send_with(const UniqueFd& socket, const std::string& bytes, int descriptor) {
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (descriptor >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(head), &descriptor, sizeof(int));
  }
  return ::sendmsg(socket.get(), &message, MSG_NOSIGNAL);
}

ssize_t receive_with(const UniqueFd& socket, std::string& bytes,
                     std::vector<UniqueFd>& descriptors) {
  char buffer[16 << 10];
  iovec part{buffer, sizeof(buffer)};
  alignas(cmsghdr) char control[CMSG_SPACE(kMostDescriptors * sizeof(int))];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  const ssize_t count = ::recvmsg(socket.get(), &message, MSG_CMSG_CLOEXEC);
  if (count < 0) return count;
  for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr;
       head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t handed = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t index = 0; index < handed; ++index) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(head) + index * sizeof(int), sizeof(int));
      descriptors.emplace_back(descriptor);
    }
  }
  bytes.append(buffer, static_cast<std::size_t>(count));
  return count;
}

}  // namespace cohort::os
