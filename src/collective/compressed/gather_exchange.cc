#include "collective/compressed/gradient_exchange.h"

#include <algorithm>

#include "base/fail.h"
#include "collective/compressed/peer_messages.h"
#include "collective/sum_kernel.h"
#include "compression/error_feedback.h"

namespace cohort::collective {
namespace {

// Messages differ in length: it travels first.
enum GatherTag : transport::Tag { kLength, kMessage };

/// For codecs whose messages are so short that everyone can have everybody's (sign, topk), and
/// whose sums would not be as short. Each rank encodes all its gradients and sends the message to
/// all; everybody decodes and adds the messages up in the order of the ranks.
///
///   1. the receives of all peers' lengths are started
///   2. own length and own message are sent to all
///   3. as each length comes, the receive of its message is started
///   4. sum = ((0 + message 0) + message 1) + …, each as soon as it is there
class GatherExchange : public GradientExchange {
 public:
  explicit GatherExchange(const ExchangeOptions& options)
      : transport_(options.transport),
        timeout_(options.timeout),
        feedback_(
            compression::make_codec(options.compression, options.shape, exchange_seed(options, 0)),
            options.shape.count,
            {.keep_rest = options.compression.error_feedback, .momentum = options.momentum}),
        incoming_(static_cast<std::size_t>(transport_.size())) {
    for (int rank = 0; rank < transport_.size(); ++rank) {
      if (rank != transport_.rank()) of(rank).bytes.resize(feedback_.codec().max_bytes());
    }
  }

  void sum(std::span<float> gradients) override {
    try {
      exchange(feedback_.encode(gradients), gradients);
    } catch (...) {
      feedback_.undo();
      throw;
    }
    feedback_.keep();
  }

  void add_rest(std::span<float> gradients) const override {
    if (!feedback_.rest().empty()) add_to(gradients, feedback_.rest());
  }

  ExchangeMemory memory() const override {
    return {.rest = copy(feedback_.rest()), .velocity = copy(feedback_.velocity()), .codec = {}};
  }

  ExchangeMemory memory_if_done() const override {
    return {.rest = copy(feedback_.undone_rest()),
            .velocity = copy(feedback_.undone_velocity()),
            .codec = {}};
  }

  void recall(const ExchangeMemory& memory) override {
    feedback_.start_from(memory.rest, memory.velocity);
  }

 private:
  static std::vector<float> copy(std::span<const float> floats) {
    return {floats.begin(), floats.end()};
  }

  void exchange(std::span<const std::byte> own, std::span<float> gradients) {
    length_ = own.size();
    PeerMessages messages(transport_, Deadline::in(timeout_));
    for_each_peer([&](int rank) {
      of(rank).receive = messages.receive(rank, kLength, bytes_of(of(rank).length));
    });
    for_each_peer([&](int rank) {
      messages.send(rank, kLength, bytes_of(length_));
      messages.send(rank, kMessage, own);
    });
    for_each_peer([&](int rank) { start_message(messages, rank); });
    std::ranges::fill(gradients, 0.0F);
    for (int rank = 0; rank < transport_.size(); ++rank) {
      decode_from(rank, [&] { feedback_.codec().add(message(messages, rank, own), gradients); });
    }
    messages.finish();
  }

  /// From one peer.
  struct Incoming {
    std::uint64_t length = 0;
    std::vector<std::byte> bytes = {};
    std::size_t receive = 0;
  };

  static std::span<std::byte> bytes_of(std::uint64_t& length) {
    return std::as_writable_bytes(std::span(&length, 1));
  }

  Incoming& of(int rank) { return incoming_[static_cast<std::size_t>(rank)]; }

  /// From the next rank on, so that not all send to rank 0 first.
  template <class Visit>
  void for_each_peer(Visit&& visit) const {
    for (int i = 1; i < transport_.size(); ++i) {
      visit((transport_.rank() + i) % transport_.size());
    }
  }

  void start_message(PeerMessages& messages, int rank) {
    Incoming& incoming = of(rank);
    messages.wait(incoming.receive);
    if (incoming.length > incoming.bytes.size()) {
      throw Error(ErrorCode::corrupt,
                  fmt::format("rank {} announced gradients of {} bytes; they have at most {}", rank,
                              incoming.length, incoming.bytes.size()))
          .about_rank(rank);
    }
    incoming.receive =
        messages.receive(rank, kMessage, std::span(incoming.bytes).first(incoming.length));
  }

  std::span<const std::byte> message(PeerMessages& messages, int rank,
                                     std::span<const std::byte> own) {
    if (rank == transport_.rank()) return own;
    messages.wait(of(rank).receive);
    return std::span(of(rank).bytes).first(of(rank).length);
  }

  transport::Transport& transport_;
  Duration timeout_;
  compression::ErrorFeedback feedback_;
  std::uint64_t length_ = 0;  // Of this rank's message.
  std::vector<Incoming> incoming_;
};

}  // namespace

std::unique_ptr<GradientExchange> make_gather_exchange(const ExchangeOptions& options) {
  return std::make_unique<GatherExchange>(options);
}

}  // namespace cohort::collective
