#include "transport/gloo/gloo_connections.h"

#include <gloo/transport/address.h>
#include <gloo/transport/device.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/tcp/device.h>
#include <signal.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/fail.h"
#include "base/log.h"
#include "cluster/handshake.h"
#include "os/tcp_socket.h"

namespace cohort::transport {
namespace {

using GlooContext = ::gloo::transport::Context;

std::shared_ptr<::gloo::transport::Device> make_device(const std::string& bind_address) {
  // libgloo crashes on a name it cannot resolve, so the address is tried before.
  const std::string address =
      os::own_address(os::listen_on(bind_address.empty() ? "127.0.0.1" : bind_address, 0));
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

// A stranger may sit on a port, or take a connection that was meant for a rank; then all connect
// anew, at other ports.
constexpr int kMostAttempts = 5;
constexpr Duration kOneAttempt = std::chrono::seconds(10);

/// For libgloo, whose pair gives up connecting after five times its context's timeout.
std::chrono::milliseconds pair_timeout(Deadline deadline) {
  constexpr int kPairPatience = 5;
  const auto all = std::chrono::ceil<std::chrono::milliseconds>(deadline.remaining());
  return std::max(std::chrono::milliseconds(1), all / kPairPatience);
}

std::string address_key(const cluster::Store& store, const GlooOptions& options, int rank) {
  return fmt::format("{}/addresses{}", options.key_prefix, store.mark_of_rank(rank));
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
  store.set(address_key(store, options, context.rank), value);
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
    return store.get(address_key(store, options, peer), deadline);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::timeout) throw;
    const auto doing = fmt::format("Rank {} has not told where it can be reached", peer);
    throw error.with_context(doing).about_rank(peer);
  }
}

/// Sends or receives one message of a handshake. Throws what libgloo throws.
class ProofMessages {
 public:
  ProofMessages(GlooContext& context, int peer, Deadline deadline)
      : context_(context), peer_(peer), deadline_(deadline) {}

  template <class Plain>
  void send(Plain message) {
    const auto buffer = context_.createUnboundBuffer(&message, sizeof(message));
    buffer->send(peer_, kProofSlot);
    if (!buffer->waitSend(left())) fail_late();
  }

  template <class Plain>
  Plain receive() {
    Plain message;
    const auto buffer = context_.createUnboundBuffer(&message, sizeof(message));
    buffer->recv(peer_, kProofSlot);
    if (!buffer->waitRecv(left())) fail_late();
    return message;
  }

 private:
  static constexpr std::uint64_t kProofSlot = 0x50524f4f46434841;

  std::chrono::milliseconds left() const {
    return std::max(std::chrono::milliseconds(1),
                    std::chrono::ceil<std::chrono::milliseconds>(deadline_.remaining()));
  }
  [[noreturn]] void fail_late() const {
    fail(ErrorCode::timeout, "Rank {} did not prove in time that it is of this run.", peer_);
  }

  GlooContext& context_;
  int peer_;
  Deadline deadline_;
};

/// libgloo's listeners take whoever comes first. So the first messages of a pair prove its ends to
/// each other (cluster/handshake.h), before it is used: the lower rank is the one that connects.
void prove_pair(GlooContext& context, int peer, const cluster::Secret& secret, Deadline deadline) {
  ProofMessages messages(context, peer, deadline);
  bool proved = false;
  try {
    if (context.rank < peer) {
      const cluster::Connecting connecting(secret, cluster::Purpose::messages,
                                           {.number = context.rank});
      messages.send(connecting.opening());
      const auto closing = connecting.closing(messages.receive<cluster::Answer>());
      proved = closing.has_value();
      messages.send(closing.value_or(cluster::Closing{}));  // So that nobody waits for it.
    } else {
      cluster::Accepting accepting(secret, cluster::Purpose::messages);
      const auto answer = accepting.answer(messages.receive<cluster::Opening>());
      if (answer) {
        messages.send(*answer);
        const auto member = accepting.member(messages.receive<cluster::Closing>());
        proved = member == cluster::Member{.number = peer};
      }
    }
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw Error(ErrorCode::peer_lost,
                fmt::format("Rank {} was lost while it proved who it is: {}", peer, error.what()))
        .about_rank(peer);
  }
  if (proved) return;
  throw Error(
      ErrorCode::invalid,
      fmt::format("What is connected as rank {} does not know the secret of this run.", peer))
      .about_rank(peer);
}

/// How an attempt to connect all ends, for all of them. A rank that went away earlier would end
/// those that are still connecting: libgloo does not catch its own error there.
constexpr const char* kReady = "ready";
constexpr const char* kAgain = "again";

bool all_are_ready(int size, cluster::Store& store, const GlooOptions& options, Deadline deadline) {
  const std::string outcome = options.key_prefix + "/outcome";
  if (store.add(options.key_prefix + "/connected", 1) == size) store.set_once(outcome, kReady);
  return store.get(outcome, deadline) == kReady;
}

/// One attempt. Throws where a pair cannot be connected, or not with who it should be.
void connect_all(GlooContext& context, cluster::Store& store, const GlooOptions& options,
                 Deadline deadline) {
  std::vector<std::string> published(static_cast<std::size_t>(context.size));
  for (int peer = 0; peer < context.size; ++peer) {
    if (peer == context.rank) continue;
    published[static_cast<std::size_t>(peer)] = published_by(peer, store, options, deadline);
  }
  const Deadline soon = Deadline::in(std::min<Duration>(kOneAttempt, deadline.remaining()));
  context.setTimeout(pair_timeout(soon));
  for (int peer = 0; peer < context.size; ++peer) {
    if (peer == context.rank) continue;
    connect_pair(context, peer, published[static_cast<std::size_t>(peer)], soon);
  }
  for (int peer = 0; peer < context.size; ++peer) {
    if (peer != context.rank) prove_pair(context, peer, store.pass().secret, soon);
  }
  context.setTimeout(pair_timeout(deadline));
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
  std::vector<std::shared_ptr<GlooContext>> attempts;  // All live until all ranks are connected.
  for (int attempt = 0;; ++attempt) {
    GlooOptions these = options;
    these.key_prefix = fmt::format("{}/{}", options.key_prefix, attempt);
    const auto context = make_device(options.bind_address)->createContext(rank, size);
    attempts.push_back(context);
    context->setTimeout(pair_timeout(deadline));
    publish_addresses(*context, store, these);
    std::optional<Error> failure;
    try {
      connect_all(*context, store, these, deadline);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::corrupt) throw;
      failure = error;
      store.set_once(these.key_prefix + "/outcome", kAgain);
    }
    const bool last = attempt + 1 == kMostAttempts || deadline.passed();
    if (failure && last) throw *failure;
    if (!failure && all_are_ready(size, store, these, deadline)) return context;
    if (last) fail(ErrorCode::timeout, "Some ranks cannot connect to each other through Gloo.");
    log_warn("Rank {} connects again, at another port: {}", rank,
             failure ? failure->what() : "another rank could not");
  }
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
