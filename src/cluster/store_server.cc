#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cerrno>
#include <system_error>
#include <vector>

#include "base/fail.h"
#include "base/integers.h"
#include "base/log.h"
#include "cluster/tcp_store.h"
#include "os/tcp_socket.h"

namespace cohort::cluster {

namespace {

constexpr std::size_t kMaxClients = 4096;
// Bytes; a client that reads its answers has at most one of them outstanding.
constexpr std::size_t kMaxUnreadAnswers = 4 * kMaxStoreValue;

/// Sends what the socket takes now. False when the connection is broken.
bool send_some(const UniqueFd& socket, std::string& bytes) {
  while (!bytes.empty()) {
    const auto count = ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    bytes.erase(0, static_cast<std::size_t>(count));
  }
  return true;
}

std::int64_t parse_amount(const std::string& text) {
  if (const auto amount = parse_integer(text)) return *amount;
  fail(ErrorCode::invalid, "\"{}\" is not a number to add to a counter.", excerpt(text));
}

}  // namespace

StoreServer::StoreServer(const std::string& address, std::uint16_t port)
    : listener_(os::listen_on(address, port)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!wake_) fail_errno("Cannot make the eventfd of the store");
}

StoreServer::~StoreServer() = default;

std::uint16_t StoreServer::port() const {
  return os::own_port(listener_);
}

void StoreServer::start() {
  thread_ = std::jthread([this](std::stop_token stop) {
    const std::stop_callback wake_up(stop, [this] { ::eventfd_write(wake_.get(), 1); });
    serve(stop);
  });
}

// One round: wait for anything, take what clients sent, send what sockets take, forget who is gone.
// New clients come last, since they are not in `sockets` of this round.
void StoreServer::serve(std::stop_token stop) {
  std::vector<pollfd> sockets;
  while (!stop.stop_requested()) {
    sockets.assign({{wake_.get(), POLLIN, 0},
                    {listener_.get(), static_cast<short>(accepting_ ? POLLIN : 0), 0}});
    for (const Client& client : clients_) {
      const int events = POLLIN | (client.outgoing.empty() ? 0 : POLLOUT);
      sockets.push_back({client.socket.get(), static_cast<short>(events), 0});
    }
    if (::poll(sockets.data(), sockets.size(), -1) < 0) continue;
    auto polled = sockets.begin() + 2;
    for (Client& client : clients_) {
      if ((polled++)->revents != 0) receive_from(client);
    }
    for (Client& client : clients_) {
      if (!send_some(client.socket, client.outgoing)) client.gone = true;
    }
    remove_gone();
    if (sockets[1].revents != 0) accept_clients();
  }
}

// Where the system has no descriptor left, the listener would be readable all the time: it is not
// looked at until a client has gone.
void StoreServer::accept_clients() {
  while (clients_.size() < kMaxClients) {
    UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket) {
      const bool transient = errno == EAGAIN || errno == EINTR || errno == ECONNABORTED;
      if (!transient) {
        log_warn("The store takes no more clients until one leaves: {}.",
                 std::generic_category().message(errno));
      }
      accepting_ = transient;
      return;
    }
    const int on = 1;
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    clients_.emplace_back().socket = std::move(socket);
  }
  accepting_ = false;
}

void StoreServer::receive_from(Client& client) {
  char buffer[16 << 10];
  const auto count = ::recv(client.socket.get(), buffer, sizeof(buffer), 0);
  if (count <= 0) {
    client.gone = count == 0 || (errno != EAGAIN && errno != EINTR);
    return;
  }
  client.incoming.append(buffer, static_cast<std::size_t>(count));
  try {
    while (auto request = decode_store_message(client.incoming)) {
      handle(client, std::move(*request));
    }
    if (client.outgoing.size() > kMaxUnreadAnswers) {
      fail(ErrorCode::invalid, "It asks without reading the answers.");
    }
  } catch (const Error& error) {
    log_warn("The store drops a client: {}", error.what());
    client.gone = true;
  }
}

void StoreServer::handle(Client& client, StoreMessage request) {
  // A client has one request under way: a new one means that it gave up the one before.
  client.waiting_get.reset();
  if (request.kind == StoreMessage::Kind::get) {
    const std::string key = request.key;
    client.waiting_get = std::move(request);
    answer_waiting(key);
    return;
  }
  StoreMessage answer{StoreMessage::Kind::done, request.id, "", ""};
  try {
    answer.value = apply(request);
  } catch (const Error& error) {
    answer.kind = StoreMessage::Kind::refused;
    answer.value = error.what();
  }
  client.outgoing += encode_store_message(answer);
  answer_waiting(request.key);
}

std::string StoreServer::apply(const StoreMessage& request) {
  if (request.kind == StoreMessage::Kind::add) {
    return std::to_string(values_.add(request.key, parse_amount(request.value)));
  }
  if (request.kind == StoreMessage::Kind::set_once) {
    return values_.set_once(request.key, request.value);
  }
  if (request.kind != StoreMessage::Kind::set) {
    fail(ErrorCode::invalid, "The store was sent an answer where it expects a request.");
  }
  values_.set(request.key, request.value);
  return "";
}

void StoreServer::answer_waiting(const std::string& key) {
  const auto value = values_.find(key);
  if (!value) return;
  for (Client& client : clients_) {
    if (!client.waiting_get || client.waiting_get->key != key) continue;
    client.outgoing +=
        encode_store_message({StoreMessage::Kind::done, client.waiting_get->id, "", *value});
    client.waiting_get.reset();
  }
}

void StoreServer::remove_gone() {
  const auto removed = std::erase_if(clients_, [](const Client& client) { return client.gone; });
  if (removed > 0) accepting_ = true;
}

}  // namespace cohort::cluster
