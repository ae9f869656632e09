#include "collective/compressed/gradient_exchange.h"

#include <algorithm>

#include "collective/compressed/peer_messages.h"
#include "collective/schedule.h"
#include "collective/sum_kernel.h"
#include "compression/error_feedback.h"

namespace cohort::collective {
namespace {

enum SegmentTag : transport::Tag { kPart, kSum };

/// For codecs with messages as long as their vectors (fp16, bf16, int8). The gradients are cut into
/// a segment per rank, which owns it:
///
///   1. every rank encodes its part of each segment and sends it to the owner;
///   2. the owner decodes and sums the parts in the order of the ranks, its own as it is;
///   3. the owner encodes the sum and sends it to all, who decode it, as does the owner itself.
///
///   rank 0   [ own 0 | for 1 | for 2 ]      A *lane* is what this rank sends for one segment: its
///   rank 1   [ for 0 | own 1 | for 2 ]      part to the owner, or where it is the owner itself the
///   rank 2   [ for 0 | for 1 | own 2 ]      sum to all. Every lane has its own rest and codec.
///
/// Both encodings keep what they left out: the part's rest stays with the sender, the sum's with
/// the owner. A rank sends 2 (world - 1) / world of a message of the whole: no more with many ranks
/// than with two.
class SegmentExchange : public GradientExchange {
 public:
  explicit SegmentExchange(const ExchangeOptions& options)
      : transport_(options.transport),
        timeout_(options.timeout),
        mine_(segment_of(options.shape.count, transport_.size(), transport_.rank())),
        sum_(mine_.size()),
        sum_feedback_(feedback(options, transport_.rank())) {
    // From the next rank on, so that not all send to rank 0 first.
    for (int i = 1; i < transport_.size(); ++i) {
      const int rank = (transport_.rank() + i) % transport_.size();
      peers_.push_back(std::make_unique<Peer>(rank, options, sum_feedback_.codec().max_bytes()));
    }
    for (int rank = 0; rank < transport_.size(); ++rank) {
      const bool own = rank == transport_.rank();
      lanes_.push_back(own ? Lane{mine_, &sum_feedback_}
                           : Lane{peer_of(rank).segment, &peer_of(rank).feedback});
    }
  }

  // All lanes keep their new rest, or none does.
  void sum(std::span<float> gradients) override {
    try {
      exchange(gradients);
    } catch (...) {
      for (const Lane& lane : lanes_) lane.feedback->undo();
      throw;
    }
    for (const Lane& lane : lanes_) lane.feedback->keep();
  }

  void add_rest(std::span<float> gradients) const override {
    for (const auto& [segment, feedback] : lanes_) {
      if (!feedback->rest().empty()) add_to(part(gradients, segment), feedback->rest());
    }
  }

  ExchangeMemory memory() const override {
    return memory_with([](const compression::ErrorFeedback& lane) { return lane.rest(); });
  }

  // Where another rank has all sums, this one had made its own.
  ExchangeMemory memory_if_done() const override {
    return memory_with([](const compression::ErrorFeedback& lane) { return lane.undone_rest(); });
  }

  void recall(const ExchangeMemory& memory) override {
    recall_codecs(memory.codec);
    if (memory.rest.size() != lanes_.back().segment.end) return;
    for (const auto& [segment, feedback] : lanes_) {
      feedback->start_from(std::span(memory.rest).subspan(segment.begin, segment.size()), {});
    }
  }

 private:
  template <class RestOf>
  ExchangeMemory memory_with(RestOf&& rest_of) const {
    ExchangeMemory memory{.rest = {}, .velocity = {}, .codec = {.floats = {}, .numbers = place()}};
    for (const auto& [segment, feedback] : lanes_) {
      const auto rest = rest_of(*feedback);
      const compression::CodecMemory codec = feedback->codec().memory();
      append(rest, memory.rest);
      append(codec.floats, memory.codec.floats);
      append(codec.numbers, memory.codec.numbers);
    }
    return memory;
  }

  void exchange(std::span<float> gradients) {
    PeerMessages messages(transport_, Deadline::in(timeout_));
    start_receives(messages);
    for (const auto& peer : peers_) {
      if (peer->segment.empty()) continue;
      messages.send(peer->rank, kPart, peer->feedback.encode(part(gradients, peer->segment)));
    }
    if (!mine_.empty()) sum_mine(messages, gradients);
    for (const auto& peer : peers_) {
      if (peer->segment.empty()) continue;
      messages.wait(peer->sum_receive);
      decode_from(peer->rank, [&] {
        peer->feedback.codec().decode(peer->sum, part(gradients, peer->segment));
      });
    }
    messages.finish();
  }

  /// Codecs make random numbers by rank and world.
  std::vector<std::int64_t> place() const { return {transport_.rank(), transport_.size()}; }

  void recall_codecs(const compression::CodecMemory& memory) {
    std::span<const float> floats = memory.floats;
    std::span<const std::int64_t> numbers = memory.numbers;
    if (take(place().size(), numbers) != place()) return;
    for (const Lane& lane : lanes_) {
      compression::Codec& codec = lane.feedback->codec();
      const compression::CodecMemory like = codec.memory();
      codec.recall({.floats = take(like.floats.size(), floats),
                    .numbers = take(like.numbers.size(), numbers)});
    }
  }

  template <class T>
  static void append(const T& from, auto& to) {
    to.insert(to.end(), from.begin(), from.end());
  }

  /// The first so many, which are taken off; fewer where there are not as many.
  template <class T>
  static std::vector<T> take(std::size_t count, std::span<const T>& from) {
    const auto first = from.first(std::min(count, from.size()));
    from = from.subspan(first.size());
    return {first.begin(), first.end()};
  }

  static compression::ErrorFeedback feedback(const ExchangeOptions& options, int owner) {
    const std::size_t count =
        segment_of(options.shape.count, options.transport.size(), owner).size();
    return {compression::make_codec(options.compression, {.count = count},
                                    exchange_seed(options, owner)),
            count,
            {.keep_rest = options.compression.error_feedback}};
  }

  struct Peer {
    Peer(int peer_rank, const ExchangeOptions& options, std::size_t part_bytes)
        : rank(peer_rank),
          segment(segment_of(options.shape.count, options.transport.size(), peer_rank)),
          feedback(SegmentExchange::feedback(options, peer_rank)),
          part(part_bytes),
          sum(feedback.codec().max_bytes()) {}

    int rank;
    Segment segment;                      // That it owns.
    compression::ErrorFeedback feedback;  // Of what it is sent.
    std::vector<std::byte> part;          // Its part of this rank's segment.
    std::vector<std::byte> sum;           // The sum of its segment.
    std::size_t part_receive = 0;
    std::size_t sum_receive = 0;
  };

  /// From this rank to the owner of a segment, or where that is this rank to all.
  struct Lane {
    Segment segment;
    compression::ErrorFeedback* feedback;
  };

  static std::span<float> part(std::span<float> gradients, Segment segment) {
    return gradients.subspan(segment.begin, segment.size());
  }

  void start_receives(PeerMessages& messages) {
    for (const auto& peer : peers_) {
      if (!mine_.empty()) peer->part_receive = messages.receive(peer->rank, kPart, peer->part);
      if (!peer->segment.empty()) {
        peer->sum_receive = messages.receive(peer->rank, kSum, peer->sum);
      }
    }
  }

  void sum_mine(PeerMessages& messages, std::span<float> gradients) {
    const auto own = part(gradients, mine_);
    std::ranges::fill(sum_, 0.0F);
    for (int rank = 0; rank < transport_.size(); ++rank) {
      if (rank == transport_.rank()) {
        add_to(sum_, own);
      } else {
        add_part(messages, peer_of(rank));
      }
    }
    const auto message = sum_feedback_.encode(sum_);
    for (const auto& peer : peers_) messages.send(peer->rank, kSum, message);
    sum_feedback_.codec().decode(message, own);
  }

  void add_part(PeerMessages& messages, const Peer& peer) {
    messages.wait(peer.part_receive);
    decode_from(peer.rank, [&] { sum_feedback_.codec().add(peer.part, sum_); });
  }

  Peer& peer_of(int rank) const {
    const int world = transport_.size();
    return *peers_[static_cast<std::size_t>((rank - transport_.rank() - 1 + world) % world)];
  }

  transport::Transport& transport_;
  Duration timeout_;
  Segment mine_;
  std::vector<float> sum_;  // Of the segment this rank owns.
  compression::ErrorFeedback sum_feedback_;
  std::vector<std::unique_ptr<Peer>> peers_;
  std::vector<Lane> lanes_;  // By owner, so the segments are in order.
};

}  // namespace

std::unique_ptr<GradientExchange> make_segment_exchange(const ExchangeOptions& options) {
  return std::make_unique<SegmentExchange>(options);
}

}  // namespace cohort::collective
