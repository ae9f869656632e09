#include "cluster/socket_store.h"

#include <poll.h>
#include <sys/socket.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/fail.h"
#include "base/integers.h"
#include "os/endpoint.h"
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
  if (header.kind > static_cast<std::uint32_t>(StoreMessage::Kind::take_now)) {
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

SocketStore::SocketStore(const std::string& endpoint, const Pass& pass, Deadline connect,
                         const Member& self)
    : server_(endpoint),
      pass_(pass),
      socket_(meet(
          {pass.secret, Purpose::store, self, "The store at " + endpoint},
          [&] { return os::connect_at(endpoint, connect); }, connect)) {}

void SocketStore::set(const std::string& key, const std::string& value) {
  ask({StoreMessage::Kind::set, 0, key, value}, Deadline::in(kPromptAnswer));
}

std::string SocketStore::get(const std::string& key, Deadline deadline) {
  return ask({StoreMessage::Kind::get, 0, key, ""}, deadline).message.value;
}

std::int64_t SocketStore::add(const std::string& key, std::int64_t amount) {
  const std::string sum =
      ask({StoreMessage::Kind::add, 0, key, std::to_string(amount)}, Deadline::in(kPromptAnswer))
          .message.value;
  if (const auto number = parse_integer(sum)) return *number;
  fail(ErrorCode::corrupt, "The store at {} answers \"{}\" where it should have a sum.", server_,
       excerpt(sum));
}

std::string SocketStore::set_once(const std::string& key, const std::string& value) {
  return ask({StoreMessage::Kind::set_once, 0, key, value}, Deadline::in(kPromptAnswer))
      .message.value;
}

void SocketStore::give(const std::string& key, const os::SharedMemory& memory, int takers) {
  check_same_host();
  ask({StoreMessage::Kind::give, 0, key, fmt::format("{} {}", memory.size(), takers)},
      Deadline::in(kPromptAnswer), memory.descriptor());
}

os::SharedMemory SocketStore::take(const std::string& key, os::SharedMemory::Pages pages,
                                   Deadline deadline) {
  check_same_host();
  Received received = deadline.passed() ? ask_for_memory_now(key) : ask_for_memory(key, deadline);
  const auto bytes = parse_integer(received.message.value, 1);
  if (!received.descriptor || !bytes) {
    fail(ErrorCode::corrupt, "The store at {} hands over nothing as \"{}\".", server_, key);
  }
  return os::SharedMemory::adopt(std::move(received.descriptor), static_cast<std::size_t>(*bytes),
                                 pages);
}

void SocketStore::check_same_host() const {
  if (os::is_unix(server_)) return;
  fail(ErrorCode::unsupported, "Memory cannot be handed over by the store at {}.", server_);
}

std::string SocketStore::local_address() const {
  return os::is_unix(server_) ? "" : os::own_address(socket_);
}

SocketStore::Received SocketStore::ask(StoreMessage request, Deadline deadline, int descriptor) {
  request.id = ++last_id_;
  send_all(encode_store_message(request), descriptor, deadline);
  Received answer = receive_answer(request, deadline);
  if (answer.message.kind == StoreMessage::Kind::refused) {
    fail(ErrorCode::invalid, "{}", answer.message.value);
  }
  return answer;
}

/// The server counts who has taken what, so one take() must not be asked twice. It forgets what it
/// has not answered when the next request comes, and answers in order: a take that gave up is still
/// under way while nothing was asked since, and otherwise its answer, if there is one, has come in
/// before the one to the request that followed.
SocketStore::Received SocketStore::ask_for_memory(const std::string& key, Deadline deadline) {
  if (auto late = late_.extract(key)) return std::move(late.mapped());
  StoreMessage request{StoreMessage::Kind::take, 0, key, ""};
  const auto last = given_up_.find(last_id_);
  const bool goes_on = last != given_up_.end() && last->second == key;
  try {
    if (!goes_on) return ask(request, deadline);
    request.id = last_id_;
    Received answer = receive_answer(request, deadline);
    if (answer.message.kind != StoreMessage::Kind::refused) return answer;
    fail(ErrorCode::invalid, "{}", answer.message.value);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::timeout) given_up_[last_id_] = key;
    // It may have come in before the answer that was waited for.
    if (auto late = late_.extract(key)) return std::move(late.mapped());
    throw;
  }
}

SocketStore::Received SocketStore::ask_for_memory_now(const std::string& key) {
  Received answer = ask({StoreMessage::Kind::take_now, 0, key, ""}, Deadline::in(kPromptAnswer));
  if (answer.message.kind == StoreMessage::Kind::handed) return answer;
  if (auto late = late_.extract(key)) return std::move(late.mapped());
  fail(ErrorCode::timeout, "Nobody has given the memory \"{}\" to the store at {}.", key, server_);
}

void SocketStore::send_all(std::string bytes, int descriptor, Deadline deadline) {
  while (!bytes.empty()) {
    const auto count = os::send_with(socket_, bytes, descriptor);
    if (count >= 0) {
      bytes.erase(0, static_cast<std::size_t>(count));
      descriptor = -1;  // It went with the first byte.
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

SocketStore::Received SocketStore::receive_answer(const StoreMessage& request, Deadline deadline) {
  while (true) {
    Received answer = take_message(request, deadline);
    if (answer.message.id == request.id) {
      given_up_.erase(given_up_.begin(), given_up_.upper_bound(request.id));
      return answer;
    }
    // An answer to an earlier get() or take() that gave up may still come in: its id is another one.
    const auto take = given_up_.find(answer.message.id);
    if (take != given_up_.end() && answer.message.kind == StoreMessage::Kind::handed) {
      late_[take->second] = std::move(answer);
    }
  }
}

SocketStore::Received SocketStore::take_message(const StoreMessage& request, Deadline deadline) {
  while (true) {
    try {
      if (auto message = decode_store_message(received_)) {
        Received received{std::move(*message), {}};
        if (received.message.kind == StoreMessage::Kind::handed && !descriptors_.empty()) {
          received.descriptor = std::move(descriptors_.front());
          descriptors_.erase(descriptors_.begin());
        }
        return received;
      }
    } catch (const Error& error) {
      throw error.with_context("Talking to " + server_);
    }
    const auto count = os::receive_with(socket_, received_, descriptors_);
    if (count == 0) {
      fail_lost("it closed the connection");
    } else if (count < 0 && errno == EAGAIN) {
      if (!os::wait_for_socket(socket_, POLLIN, deadline)) {
        fail(ErrorCode::timeout,
             "The store at {} had no answer about the key \"{}\" before the deadline.", server_,
             request.key);
      }
    } else if (count < 0 && errno != EINTR) {
      fail_lost(std::generic_category().message(errno));
    }
  }
}

void SocketStore::fail_lost(const std::string& reason) const {
  fail(ErrorCode::peer_lost, "The store at {} is lost: {}.", server_, reason);
}

}  // namespace cohort::cluster
