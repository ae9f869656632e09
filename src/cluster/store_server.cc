#include <poll.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <new>
#include <system_error>
#include <vector>

#include "base/fail.h"
#include "base/failpoint.h"
#include "base/integers.h"
#include "base/log.h"
#include "cluster/socket_store.h"
#include "os/endpoint.h"

namespace cohort::cluster {

namespace {

constexpr std::size_t kMaxClients = 4096;
// Bytes; a client that reads its answers has at most one of them outstanding.
constexpr std::size_t kMaxUnreadAnswers = 4 * kMaxStoreValue;
// Descriptors that came before the request they belong to: a client has one request under way.
constexpr std::size_t kMaxLooseDescriptors = 8;
// Pieces of memory of one client that nobody has taken. A task gives a few in every group; what is
// older is of groups that are over.
constexpr std::size_t kMaxUntakenOfClient = 128;

constexpr const char* kNoMemory = "there is no memory left.";
constexpr int kPause = 100;  // Milliseconds until the next try, where there is none at all.

std::int64_t parse_amount(const std::string& text) {
  if (const auto amount = parse_integer(text)) return *amount;
  fail(ErrorCode::invalid, "\"{}\" is not a number to add to a counter.", excerpt(text));
}

/// A key with a mark is of the one it names.
void check_writer(const Member& writer, const std::string& key) {
  const auto mark = key.rfind('@');
  if (mark == std::string::npos) return;
  if (key.substr(mark) == mark_of(writer)) return;
  fail(ErrorCode::invalid, "{} may not write \"{}\"", name_of(writer), excerpt(key));
}

}  // namespace

StoreServer::StoreServer(const Pass& pass)
    : StoreServer(pass.endpoint_of(pass.new_address("store")), pass) {}

StoreServer::StoreServer(const std::string& endpoint, const Pass& pass)
    : pass_(pass),
      door_(endpoint, pass, Purpose::store),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      values_(pass) {
  if (!wake_) fail_errno("Cannot make the eventfd of the store");
}

StoreServer::~StoreServer() = default;

void StoreServer::start() {
  thread_ = std::jthread([this](std::stop_token stop) {
    const std::stop_callback wake_up(stop, [this] { ::eventfd_write(wake_.get(), 1); });
    serve(stop);
  });
}

/// Without memory whoever it was for is dropped; the others are served.
void StoreServer::serve(std::stop_token stop) {
  std::vector<pollfd> sockets;
  while (!stop.stop_requested()) {
    try {
      serve_round(sockets);
    } catch (const std::bad_alloc&) {
      pollfd woken{wake_.get(), POLLIN, 0};
      ::poll(&woken, 1, kPause);
    }
  }
}

// One round: wait for anything, take what clients sent, send what sockets take, forget who is gone.
// New clients come last, since they are not in `sockets` of this round.
void StoreServer::serve_round(std::vector<pollfd>& sockets) {
  sockets.assign({{wake_.get(), POLLIN, 0}});
  for (const Client& client : clients_) {
    const int events = POLLIN | (client.outgoing.empty() ? 0 : POLLOUT);
    sockets.push_back({client.socket.get(), static_cast<short>(events), 0});
  }
  const int patience = door_.add_to(sockets);
  if (::poll(sockets.data(), sockets.size(), patience) < 0) return;
  auto polled = sockets.begin() + 1;
  for (Client& client : clients_) {
    if ((polled++)->revents != 0) receive_from(client);
  }
  for (Client& client : clients_) {
    if (!send_some(client)) client.gone = true;
  }
  remove_gone();
  for (Doorkeeper::Admitted& admitted : door_.look()) {
    failpoint("store.before-letting-in");
    clients_.push_back({.socket = std::move(admitted.socket), .member = admitted.member});
  }
  if (clients_.size() >= kMaxClients) door_.set_taking(false);
}

void StoreServer::receive_from(Client& client) {
  try {
    const auto count = os::receive_with(client.socket, client.incoming, client.descriptors);
    if (count <= 0) {
      client.gone = count == 0 || (errno != EAGAIN && errno != EINTR);
      return;
    }
    while (!client.gone) {
      auto request = decode_store_message(client.incoming);
      if (!request) break;
      handle(client, std::move(*request));
    }
    if (client.descriptors.size() > kMaxLooseDescriptors) {
      fail(ErrorCode::invalid, "It sends descriptors that belong to nothing.");
    }
  } catch (const Error& error) {
    drop(client, error.what());
  } catch (const std::bad_alloc&) {
    drop(client, kNoMemory);
  }
}

void StoreServer::drop(Client& client, const char* why) {
  client.gone = true;
  log_warn("The store drops {}: {}", name_of(client.member), why);
}

void StoreServer::handle(Client& client, StoreMessage request) {
  // A client has one request under way: a new one means that it gave up the one before.
  client.waiting.reset();
  const bool now = request.kind == StoreMessage::Kind::take_now;
  if (now || request.kind == StoreMessage::Kind::get || request.kind == StoreMessage::Kind::take) {
    client.waiting = std::move(request);
    const bool answered = answer_now(client);
    if (!answered && now) answer(client, {StoreMessage::Kind::done, client.waiting->id, "", ""});
    if (answered || now) client.waiting.reset();
    return;
  }
  failpoint("store.before-answering");
  StoreMessage reply{StoreMessage::Kind::done, request.id, "", ""};
  try {
    reply.value = apply(client, request);
  } catch (const Error& error) {
    reply.kind = StoreMessage::Kind::refused;
    reply.value = error.what();
  }
  answer_waiting(request.key);  // First: what is set is set, whatever becomes of who has set it.
  answer(client, reply);
}

std::string StoreServer::apply(Client& client, const StoreMessage& request) {
  // A descriptor is taken from its queue even where what came with it is refused.
  if (request.kind != StoreMessage::Kind::give) check_writer(client.member, request.key);
  switch (request.kind) {
    case StoreMessage::Kind::add:
      return std::to_string(values_.add(request.key, parse_amount(request.value)));
    case StoreMessage::Kind::set_once:
      return values_.set_once(request.key, request.value);
    case StoreMessage::Kind::set:
      values_.set(request.key, request.value);
      return "";
    case StoreMessage::Kind::give:
      take_given(client, request);
      return "";
    default:
      fail(ErrorCode::invalid, "The store was sent an answer where it expects a request.");
  }
}

void StoreServer::take_given(Client& client, const StoreMessage& request) {
  UniqueFd descriptor;
  if (!client.descriptors.empty()) {
    descriptor = std::move(client.descriptors.front());
    client.descriptors.erase(client.descriptors.begin());
  }
  check_writer(client.member, request.key);
  const auto blank = request.value.find(' ');
  const auto bytes = parse_integer(request.value.substr(0, blank), 1);
  const auto takers = parse_integer(
      blank == std::string::npos ? "" : request.value.substr(blank + 1), 0, kAnyTakers);
  if (!descriptor || !bytes || !takers) {
    fail(ErrorCode::invalid, "\"{}\" is not memory to be handed over.", excerpt(request.value));
  }
  values_.give(request.key, {std::move(descriptor), static_cast<std::size_t>(*bytes)},
               static_cast<int>(*takers));
  client.gave.push_back(request.key);
  if (client.gave.size() > kMaxUntakenOfClient) {
    values_.withdraw(client.gave.front());
    client.gave.pop_front();
  }
}

void StoreServer::answer(Client& client, const StoreMessage& message, UniqueFd descriptor) {
  // Before memory is taken for it: one read may bring hundreds of requests.
  if (client.unread + message.value.size() > kMaxUnreadAnswers) {
    return drop(client, "it asks without reading the answers");
  }
  client.outgoing.push_back({encode_store_message(message), std::move(descriptor)});
  client.unread += client.outgoing.back().bytes.size();
}

/// Answers what the client waits for, if that can be answered. What goes wrong is its own answer:
/// it may be another one's request that this is part of.
bool StoreServer::answer_now(Client& client) {
  try {
    failpoint("store.before-handing-over");
    return find_answer(client);
  } catch (const Error& error) {
    answer(client, {StoreMessage::Kind::refused, client.waiting->id, "", error.what()});
    return true;
  }
}

bool StoreServer::find_answer(Client& client) {
  const StoreMessage& request = *client.waiting;
  if (request.kind == StoreMessage::Kind::get) {
    const auto value = values_.find(request.key);
    if (value) answer(client, {StoreMessage::Kind::done, request.id, "", *value});
    return value.has_value();
  }
  auto memory = values_.find_memory(request.key);
  if (!memory) return false;
  answer(client, {StoreMessage::Kind::handed, request.id, "", std::to_string(memory->bytes)},
         std::move(memory->descriptor));
  return true;
}

void StoreServer::answer_waiting(const std::string& key) {
  for (Client& client : clients_) {
    if (!client.waiting || client.waiting->key != key || client.gone) continue;
    try {
      if (answer_now(client)) client.waiting.reset();
    } catch (const std::bad_alloc&) {
      drop(client, kNoMemory);
    }
  }
}

/// Sends what the socket takes now. False when the connection is broken.
bool StoreServer::send_some(Client& client) {
  while (!client.outgoing.empty()) {
    Outgoing& next = client.outgoing.front();
    const auto count = os::send_with(client.socket, next.bytes, next.descriptor.get());
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    next.descriptor = UniqueFd();  // It went with the first byte.
    next.bytes.erase(0, static_cast<std::size_t>(count));
    client.unread -= static_cast<std::size_t>(count);
    if (next.bytes.empty()) client.outgoing.pop_front();
  }
  return true;
}

void StoreServer::remove_gone() {
  for (const Client& client : clients_) {
    if (!client.gone) continue;
    for (const std::string& key : client.gave) values_.withdraw(key);
    door_.set_taking(true);
  }
  std::erase_if(clients_, [](const Client& client) { return client.gone; });
}

}  // namespace cohort::cluster
