#include "gossip/mail.h"

#include <algorithm>

#include "base/random.h"
#include "collective/sum_kernel.h"
#include "compression/float_bits.h"

namespace cohort::gossip {
namespace {

/// A worker can have made all the pieces of the job while a peer was away, and have brought along
/// as many that an earlier group of workers was not told.
MostOfPeer most_of_gradients(const JobSize& job) {
  // What schedules and many workers make of the job's rate.
  constexpr double kMostTimesRate = 1e6;
  return {.weight = 2 * job.steps * job.parts, .rate = kMostTimesRate * job.rate};
}

}  // namespace

GradientMail::GradientMail(const MailOptions& options)
    : options_(options),
      sources_(sources_of(options.topology, options.place.rank, options.place.world)),
      screen_(most_of_gradients(options.job)),
      message_bytes_(options.shape.count * sizeof(float)) {
  for (const int peer : targets_of(options.topology, options.place.rank, options.place.world)) {
    lanes_[peer] = {};
  }
  if (options.compression.kind == "none") return;
  decoder_ = new_codec(options.place.rank);
  message_bytes_ = decoder_->max_bytes();
}

// A lost peer's lane is emptied, and stays so: there is nobody left to tell, and what was in it is
// in this worker's model and in the other peers'.
void GradientMail::send(PeerBoxes& boxes, std::span<const float> gradients, double rate) {
  last_rate_ = rate;
  for (auto& [peer, lane] : lanes_) {
    if (boxes.attendance().lost(peer)) {
      lane = {.lost = true};
      continue;
    }
    is_plain() ? send_plain(boxes, peer, gradients) : send_encoded(boxes, peer, gradients);
  }
}

/// Until the next call, or until `arrived` goes.
std::span<const float> GradientMail::decode(const Box::Taken& arrived, std::size_t count) {
  if (is_plain()) return floats_of_message(arrived.message(), count);
  decoded_.resize(count);
  received_.assign(arrived.message().begin(), arrived.message().end());
  decoder_->decode(received_, decoded_);
  return decoded_;
}

Pieces GradientMail::collect(PeerBoxes& boxes, std::span<float> sum) {
  Pieces pieces;
  for (const int peer : sources_) {
    const auto arrived = boxes.take(peer);
    if (!arrived) continue;
    const std::span<const float> gradients =
        read_or_none([&] { return decode(*arrived, sum.size()); });
    const bool usable = !gradients.empty() && compression::all_finite(gradients);
    if (!screen_.passes(peer, *arrived, usable)) continue;
    pieces += {.count = arrived->weight(), .rates = arrived->rates()};
    collective::add_to(sum, gradients);
  }
  return pieces;
}

bool GradientMail::has_leftovers() const {
  return std::ranges::any_of(lanes_, [](const auto& peer_and_lane) {
    const Lane& lane = peer_and_lane.second;
    return lane.has_unsent || (lane.feedback && !lane.feedback->rest().empty());
  });
}

Pieces GradientMail::add_leftovers(int peer, std::span<float> sum) const {
  const Lane& lane = lanes_.at(peer);
  if (lane.has_unsent) collective::add_to(sum, lane.unsent);
  if (lane.feedback && !lane.feedback->rest().empty())
    collective::add_to(sum, lane.feedback->rest());
  return lane.unsent_pieces;
}

Pieces GradientMail::add_leftovers(std::span<float> sum) const {
  Pieces pieces;
  for (const auto& [peer, lane] : lanes_) pieces += add_leftovers(peer, sum);
  return pieces;
}

// Of gradients that a codec has left out nobody can say how many pieces they are of, a part of
// every piece was told; they count as one.
Pieces GradientMail::leftover_pieces() const {
  Pieces pieces;
  for (const auto& [peer, lane] : lanes_) pieces += lane.unsent_pieces;
  return pieces.count > 0 ? pieces : one_piece();
}

void GradientMail::forget_leftovers() {
  for (auto& [peer, lane] : lanes_) lane = {};
}

GradientMail::Leftovers GradientMail::mean_leftovers() const {
  if (!has_leftovers()) return {};
  Leftovers mean{.gradients = std::vector<float>(options_.shape.count),
                 .rate = leftover_pieces().rate_or(last_rate_)};
  const auto peers = static_cast<double>(std::ranges::count_if(
      lanes_, [](const auto& peer_and_lane) { return !peer_and_lane.second.lost; }));
  mean.pieces = add_leftovers(mean.gradients).count / peers;
  for (float& value : mean.gradients) value /= static_cast<float>(peers);
  return mean;
}

void GradientMail::start_from(const Leftovers& leftovers, const std::set<int>& told) {
  last_rate_ = leftovers.rate;
  const Pieces pieces{.count = leftovers.pieces, .rates = leftovers.pieces * leftovers.rate};
  for (auto& [peer, lane] : lanes_) {
    if (!told.contains(peer)) keep(lane, leftovers.gradients, pieces);
  }
}

void GradientMail::keep(Lane& lane, std::span<const float> gradients, const Pieces& pieces) {
  lane.unsent_pieces += pieces;
  if (lane.has_unsent) {
    collective::add_to(lane.unsent, gradients);
  } else {
    lane.unsent.assign(gradients.begin(), gradients.end());
    lane.has_unsent = true;
  }
}

/// Where something is unsent already, all of it goes, as one parcel: a box adds up, so nothing has
/// to wait for the box to be empty.
void GradientMail::send_plain(PeerBoxes& boxes, int peer, std::span<const float> gradients) {
  Lane& lane = lanes_.at(peer);
  std::span<const float> all = gradients;
  if (lane.has_unsent) {
    keep(lane, gradients, one_piece());
    all = lane.unsent;
  }
  const Pieces pieces = lane.has_unsent ? lane.unsent_pieces : one_piece();
  if (boxes.put(peer,
                {.weight = pieces.count, .message = std::as_bytes(all), .rates = pieces.rates},
                WhenFull::add)) {
    lane.has_unsent = false;
    lane.unsent_pieces = {};
  } else if (!lane.has_unsent) {
    keep(lane, gradients, one_piece());
  }
}

/// Encoded messages cannot be added up in the box, so one goes only when the last was taken. The
/// codec sees the sum of what has come together by then, which also is cheaper than encoding each.
void GradientMail::send_encoded(PeerBoxes& boxes, int peer, std::span<const float> gradients) {
  Lane& lane = lanes_.at(peer);
  const bool free = boxes.empty(peer);
  if (!free || lane.has_unsent) keep(lane, gradients, one_piece());
  if (!free) return;
  if (!lane.feedback) {
    lane.feedback.emplace(
        new_codec(peer), options_.shape.count,
        compression::ErrorFeedback::Options{.keep_rest = options_.compression.error_feedback});
  }
  const auto message = lane.feedback->encode(lane.has_unsent ? lane.unsent : gradients);
  const Pieces pieces = lane.has_unsent ? lane.unsent_pieces : one_piece();
  lane.has_unsent = false;
  lane.unsent_pieces = {};
  boxes.put(peer, {.weight = pieces.count, .message = message, .rates = pieces.rates},
            WhenFull::refuse);
}

/// Each lane has its own stream of random numbers, the same in every run with the job's seed.
std::unique_ptr<compression::Codec> GradientMail::new_codec(int peer) const {
  const auto [rank, world, seed] = options_.place;
  const auto stream = static_cast<std::uint64_t>(rank) * static_cast<std::uint64_t>(world) +
                      static_cast<std::uint64_t>(peer);
  return compression::make_codec(options_.compression, options_.shape, Random(seed, stream).next());
}

}  // namespace cohort::gossip
