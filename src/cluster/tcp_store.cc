#include "cluster/tcp_store.h"

#include <poll.h>
#include <sys/socket.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/fail.h"
#include "base/integers.h"
#include "os/tcp_socket.h"

namespace cohort::cluster {

namespace {

static_assert(std::endian::native == std::endian::little, "The wire format is little-endian.");

constexpr std::uint32_t kMagic = 0x31534843;  // "CHS1"

struct WireHeader {
  std::uint32_t magic;
  std::uint32_t kind;
  std::uint64_t id;
  std::uint32_t key_size;
  std::uint32_t value_size;
};
static_assert(sizeof(WireHeader) == 24);

/// Throws where a header cannot be one: before memory is taken for what it announces.
void check(const WireHeader& header) {
  if (header.magic != kMagic) {
    fail(ErrorCode::corrupt, "The other end does not speak the protocol of the Cohort store.");
  }
  if (header.kind > static_cast<std::uint32_t>(StoreMessage::Kind::set_once)) {
    fail(ErrorCode::corrupt, "A message of the store has the unknown kind {}.", header.kind);
  }
  if (header.key_size > kMaxStoreKey || header.value_size > kMaxStoreValue) {
    fail(ErrorCode::corrupt,
         "A message of the store announces a key of {} and a value of {} bytes; at most {} and {} "
         "are allowed.",
         header.key_size, header.value_size, kMaxStoreKey, kMaxStoreValue);
  }
}

// The server answers these at once; a longer silence means that it is stuck.
constexpr auto kPromptAnswer = std::chrono::seconds(30);

}  // namespace

std::string encode_store_message(const StoreMessage& message) {
  if (message.key.size() > kMaxStoreKey || message.value.size() > kMaxStoreValue) {
    fail(ErrorCode::invalid,
         "The key \"{:.40}\" has {} bytes and its value {}; the store takes at most {} and {}.",
         message.key, message.key.size(), message.value.size(), kMaxStoreKey, kMaxStoreValue);
  }
  const WireHeader header{kMagic, static_cast<std::uint32_t>(message.kind), message.id,
                          static_cast<std::uint32_t>(message.key.size()),
                          static_cast<std::uint32_t>(message.value.size())};
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof(header));
  return bytes + message.key + message.value;
}

std::optional<StoreMessage> decode_store_message(std::string& bytes) {
  WireHeader header;
  if (bytes.size() < sizeof(header)) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof(header));
  check(header);
  const std::size_t total = sizeof(header) + header.key_size + header.value_size;
  if (bytes.size() < total) return std::nullopt;
  StoreMessage message{static_cast<StoreMessage::Kind>(header.kind), header.id,
                       bytes.substr(sizeof(header), header.key_size),
                       bytes.substr(sizeof(header) + header.key_size, header.value_size)};
  bytes.erase(0, total);
  return message;
}

TcpStore::TcpStore(const std::string& host, std::uint16_t port, Deadline connect)
    : server_(os::host_and_port(host, port)), socket_(os::connect_to(host, port, connect)) {}

void TcpStore::set(const std::string& key, const std::string& value) {
  ask({StoreMessage::Kind::set, 0, key, value}, Deadline::in(kPromptAnswer));
}

std::string TcpStore::get(const std::string& key, Deadline deadline) {
  return ask({StoreMessage::Kind::get, 0, key, ""}, deadline);
}

std::int64_t TcpStore::add(const std::string& key, std::int64_t amount) {
  const std::string sum =
      ask({StoreMessage::Kind::add, 0, key, std::to_string(amount)}, Deadline::in(kPromptAnswer));
  if (const auto number = parse_integer(sum)) return *number;
  fail(ErrorCode::corrupt, "The store at {} answers \"{}\" where it should have a sum.", server_,
       excerpt(sum));
}

std::string TcpStore::set_once(const std::string& key, const std::string& value) {
  return ask({StoreMessage::Kind::set_once, 0, key, value}, Deadline::in(kPromptAnswer));
}

std::string TcpStore::local_address() const {
  return os::own_address(socket_);
}

std::string TcpStore::ask(StoreMessage request, Deadline deadline) {
  request.id = ++last_id_;
  send_all(encode_store_message(request), deadline);
  StoreMessage answer = receive_answer(request, deadline);
  if (answer.kind == StoreMessage::Kind::refused) fail(ErrorCode::invalid, "{}", answer.value);
  return std::move(answer.value);
}

void TcpStore::send_all(const std::string& bytes, Deadline deadline) {
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    const auto count =
        ::send(socket_.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (count >= 0) {
      sent += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN) {
      if (!os::wait_for_socket(socket_, POLLOUT, deadline)) {
        // Half a request is on its way; nothing that follows could be understood.
        ::shutdown(socket_.get(), SHUT_RDWR);
        fail(ErrorCode::timeout, "The store at {} did not take a request before the deadline.",
             server_);
      }
    } else if (errno != EINTR) {
      fail_lost(std::generic_category().message(errno));
    }
  }
}

StoreMessage TcpStore::receive_answer(const StoreMessage& request, Deadline deadline) {
  while (true) {
    StoreMessage answer = take_message(request, deadline);
    // An answer to an earlier get() that gave up may still come in: its id is another one.
    if (answer.id == request.id) return answer;
  }
}

StoreMessage TcpStore::take_message(const StoreMessage& request, Deadline deadline) {
  char buffer[16 << 10];
  while (true) {
    try {
      if (auto message = decode_store_message(received_)) return std::move(*message);
    } catch (const Error& error) {
      throw error.with_context("Talking to " + server_);
    }
    const auto count = ::recv(socket_.get(), buffer, sizeof(buffer), 0);
    if (count > 0) {
      received_.append(buffer, static_cast<std::size_t>(count));
    } else if (count == 0) {
      fail_lost("it closed the connection");
    } else if (errno == EAGAIN) {
      if (!os::wait_for_socket(socket_, POLLIN, deadline)) {
        fail(ErrorCode::timeout,
             "The store at {} had no answer about the key \"{}\" before the deadline.", server_,
             request.key);
      }
    } else if (errno != EINTR) {
      fail_lost(std::generic_category().message(errno));
    }
  }
}

void TcpStore::fail_lost(const std::string& reason) const {
  fail(ErrorCode::peer_lost, "The store at {} is lost: {}.", server_, reason);
}

}  // namespace cohort::cluster
