#include "transport/gloo/gloo_connections.h"

#include <gloo/transport/address.h>
#include <gloo/transport/device.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/tcp/device.h>
#include <signal.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/fail.h"
#include "os/tcp_socket.h"

namespace cohort::transport {
namespace {

using GlooContext = ::gloo::transport::Context;

std::shared_ptr<::gloo::transport::Device> make_device(const std::string& bind_address) {
  // libgloo crashes on a name it cannot resolve, so the address is tried before.
  const std::string address = os::own_address(os::listen_on(bind_address, 0));
  try {
    ::gloo::transport::tcp::attr attributes;
    attributes.hostname = address;
    return ::gloo::transport::tcp::CreateDevice(attributes);
  } catch (const std::exception& error) {
    fail(ErrorCode::io, "Gloo cannot use the address {} of this host: {}", address, error.what());
  }
}

/// libgloo writes to connections that the peer may just have closed, which by default ends the
/// process. A handler that the program has set itself stays.
void survive_broken_connections() {
  struct sigaction current {};
  ::sigaction(SIGPIPE, nullptr, &current);
  if (current.sa_handler == SIG_DFL) ::signal(SIGPIPE, SIG_IGN);
}

/// For libgloo, whose pair gives up connecting after five times its context's timeout.
std::chrono::milliseconds pair_timeout(Deadline deadline) {
  constexpr int kPairPatience = 5;
  const auto all = std::chrono::ceil<std::chrono::milliseconds>(deadline.remaining());
  return std::max(std::chrono::milliseconds(1), all / kPairPatience);
}

std::string address_key(const GlooOptions& options, int rank) {
  return fmt::format("{}/addresses/{}", options.key_prefix, rank);
}

/// A rank has a listening address per peer. It publishes all of them, by the order of the ranks,
/// in one value.
void publish_addresses(GlooContext& context, cluster::Store& store, const GlooOptions& options) {
  std::string value;
  for (int peer = 0; peer < context.size; ++peer) {
    if (peer == context.rank) continue;
    const std::vector<char> address = context.createPair(peer)->address().bytes();
    value.append(address.begin(), address.end());
  }
  store.set(address_key(options, context.rank), value);
}

/// The address that `peer` has for this rank.
std::vector<char> address_of(int peer, const GlooContext& context, const std::string& published) {
  const auto addresses = static_cast<std::size_t>(context.size - 1);
  if (published.empty() || published.size() % addresses != 0) {
    fail(ErrorCode::corrupt, "Rank {} published {} bytes as the addresses for {} peers.", peer,
         published.size(), addresses);
  }
  const std::size_t bytes = published.size() / addresses;
  const auto index =
      static_cast<std::size_t>(context.rank < peer ? context.rank : context.rank - 1);
  const auto start = published.begin() + static_cast<std::ptrdiff_t>(index * bytes);
  return std::vector<char>(start, start + static_cast<std::ptrdiff_t>(bytes));
}

void connect_pair(GlooContext& context, int peer, const std::string& published, Deadline deadline) {
  const std::vector<char> address = address_of(peer, context, published);
  try {
    context.getPair(peer)->connect(address);
  } catch (const std::exception& error) {
    throw Error(
        deadline.passed() ? ErrorCode::timeout : ErrorCode::peer_lost,
        fmt::format("Rank {} cannot connect to rank {}: {}", context.rank, peer, error.what()))
        .about_rank(peer);
  }
}

std::string published_by(int peer, cluster::Store& store, const GlooOptions& options,
                         Deadline deadline) {
  try {
    return store.get(address_key(options, peer), deadline);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::timeout) throw;
    const auto doing = fmt::format("Rank {} has not told where it can be reached", peer);
    throw error.with_context(doing).about_rank(peer);
  }
}

/// Returns when every rank is connected with every other. A rank that went away earlier would end
/// those that are still connecting: libgloo does not catch its own error there.
void wait_for_all(int size, cluster::Store& store, const GlooOptions& options, Deadline deadline) {
  const std::string ready = options.key_prefix + "/ready";
  if (store.add(options.key_prefix + "/connected", 1) == size) store.set(ready, "yes");
  store.get(ready, deadline);
}

// Slots of our own. Any number does: that a message has the same one is as good as impossible (see
// gloo_transport.cc).
constexpr std::uint64_t kReceiptSlot = 0x5245434549505453;
constexpr std::uint64_t kAlarmSlot = 0x50454552414c524d;

// How often a wait is ended to look around: what a death in the middle of a message costs at most.
constexpr auto kTick = std::chrono::milliseconds(100);

void abort_wait(::gloo::transport::UnboundBuffer* buffer) {
  if (buffer == nullptr) return;
  buffer->abortWaitRecv();
  buffer->abortWaitSend();
}

}  // namespace

std::shared_ptr<GlooContext> connect_gloo_mesh(int rank, int size, cluster::Store& store,
                                               const GlooOptions& options) {
  survive_broken_connections();
  const auto deadline = Deadline::in(options.connect_timeout);
  const auto context = make_device(options.bind_address)->createContext(rank, size);
  context->setTimeout(pair_timeout(deadline));
  publish_addresses(*context, store, options);
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank) continue;
    connect_pair(*context, peer, published_by(peer, store, options, deadline), deadline);
  }
  wait_for_all(size, store, options, deadline);
  return context;
}

Receipts::Receipts(::gloo::transport::Context& context)
    : taken_(static_cast<std::size_t>(context.size)) {
  for (int peer = 0; peer < context.size; ++peer) {
    if (peer == context.rank) continue;
    gives_.push_back(context.createUnboundBuffer(&given_, 1));
    gives_.back()->send(peer, kReceiptSlot);
  }
}

void Receipts::collect(::gloo::transport::Context& context, Deadline deadline) noexcept {
  std::vector<Buffer> takes;
  for (int peer = 0; peer < context.size; ++peer) {
    if (peer == context.rank) continue;
    try {
      auto buffer = context.createUnboundBuffer(&taken_[static_cast<std::size_t>(peer)], 1);
      buffer->recv(peer, kReceiptSlot);
      takes.push_back(std::move(buffer));
    } catch (const std::exception&) {
      // This peer has failed before.
    }
  }
  for (const Buffer& buffer : takes) {
    try {
      const auto rest = std::chrono::ceil<std::chrono::milliseconds>(deadline.remaining());
      buffer->waitRecv(std::max(std::chrono::milliseconds(1), rest));
    } catch (const std::exception&) {
      // It went away, or does not answer.
    }
  }
}

PeerAlarms::PeerAlarms(::gloo::transport::Context& context) {
  for (int peer = 0; peer < context.size; ++peer) {
    receives_.emplace_back();
    if (peer == context.rank) continue;
    receives_.back() = context.createUnboundBuffer(&nothing_, 1);
    receives_.back()->recv(peer, kAlarmSlot);
  }
}

void PeerAlarms::check(int peer) {
  ::gloo::transport::UnboundBuffer& receive = *receives_[static_cast<std::size_t>(peer)];
  receive.abortWaitRecv();  // So the wait looks for an exception and returns.
  receive.waitRecv();
}

AwaitedBuffer::AwaitedBuffer() : ticker_([this] { interrupt_now_and_then(); }) {}

AwaitedBuffer::~AwaitedBuffer() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  end_.notify_all();
  ticker_.join();
}

void AwaitedBuffer::set(::gloo::transport::UnboundBuffer* buffer) {
  const std::lock_guard lock(mutex_);
  buffer_ = buffer;
}

void AwaitedBuffer::interrupt() {
  const std::lock_guard lock(mutex_);
  abort_wait(buffer_);
}

void AwaitedBuffer::interrupt_now_and_then() {
  std::unique_lock lock(mutex_);
  while (!end_.wait_for(lock, kTick, [this] { return ending_; })) abort_wait(buffer_);
}

}  // namespace cohort::transport
