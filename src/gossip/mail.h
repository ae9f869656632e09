#pragma once

#include <cohort/job.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/fail.h"
#include "compression/codec.h"
#include "compression/error_feedback.h"
#include "compression/top_magnitudes.h"
#include "gossip/boxes/peer_boxes.h"
#include "gossip/screen.h"
#include "gossip/topology.h"

namespace cohort::gossip {

/// A worker's *mail* is what it puts into the boxes to its neighbours, compressed or not, and what
/// it makes of what it finds in its own. There are two kinds, and a job has one of them:
/// ParameterMail merges models, GradientMail adds up gradients.

/// What can be known of all that is ever told in a job.
struct JobSize {
  double steps = 0;
  double parts = 1;  ///< Of each step: its pieces of work.
  double rate = 0;   ///< The learning rate, before any schedule.
};

/// What a worker sends, and to whom.
struct MailOptions {
  Topology topology = Topology::all;
  GossipPlace place = {};
  CompressionOptions compression = {};  ///< Of any kind but auto.
  compression::CodecShape shape = {};   ///< Of the vectors that travel.
  JobSize job = {};
};

/// Of how many pieces of work gradients are, and the learning rates of the steps that these belong
/// to, added up: whoever applies a sum of gradients knows by it which share of a step it is, and
/// with which rate.
struct Pieces {
  double count = 0;
  double rates = 0;

  Pieces& operator+=(const Pieces& other) {
    count += other.count;
    rates += other.rates;
    return *this;
  }

  /// The mean rate; `none` where there are no pieces.
  double rate_or(double none) const { return count > 0 ? rates / count : none; }
};

/// The floats of a message that has them as they are. Throws Error(corrupt) where it has not
/// `count` of them.
inline std::span<const float> floats_of_message(std::span<const std::byte> message,
                                                std::size_t count) {
  if (message.size() != count * sizeof(float)) {
    fail(ErrorCode::corrupt, "a message of {} bytes arrived where {} floats were expected",
         message.size(), count);
  }
  return {reinterpret_cast<const float*>(message.data()), count};
}

/// What `read` makes of a message; nothing where it cannot be read, which is its sender's fault and
/// must not end its reader.
template <class Read>
std::span<const float> read_or_none(Read&& read) {
  try {
    return read();
  } catch (const Error&) {
    return {};
  }
}

/// One worker's parameters on their way to its neighbours, and theirs to it, by push-sum. A message
/// that was not taken is replaced by the next, and its weight comes back: so a neighbour that
/// sleeps has no more weight waiting for it than was sent last, and when it wakes up, with a model
/// that soon is old again, the others still have theirs.
///
/// With top-k, messages have the values of those coordinates that have changed most since they were
/// last sent; the receiver merges only these. They complete each other, so one that was not taken
/// stays, and nothing is sent to that neighbour meanwhile.
///
/// The model's age (model_age.h) travels with it and is merged as its coordinates are; with top-k
/// it is that of its coordinates in the mean. A model that was left behind counts for less in a
/// merge than its weight, which is not lost by that.
///
/// Who calls it: a worker's one thread, send() and merge() in turns, whenever the strategy finds it
/// time; no two workers have to agree on when.
class ParameterMail {
 public:
  /// `start`: the parameters this worker has at first.
  ParameterMail(const MailOptions& options, std::span<const float> start);

  /// The codecs that parameters can be sent with.
  static const std::vector<std::string>& codecs();

  std::size_t message_bytes() const;

  /// Takes a turn: sends to the neighbours that are due, where one is lost to the next ones. Each
  /// gets an even share of the weight where its box takes it; what is not taken stays here.
  void send(PeerBoxes& boxes, std::span<const float> own);

  /// Merges all that has arrived into `own`.
  void merge(PeerBoxes& boxes, std::span<float> own);

  double weight() const { return weight_; }
  void reset_weight() { weight_ = 1; }

  double age() const { return age_; }
  /// The model has become so old otherwise than by a merge.
  void set_age(double age) { age_ = age; }

  /// How far the models that arrived last were from the own one; nothing while none has.
  std::optional<double> distance() const { return distance_; }

  /// Messages that could not be used (Screen).
  std::int64_t left_out() const { return screen_.left_out(); }

 private:
  bool is_sparse() const { return options_.compression.kind == "topk"; }
  std::vector<int> neighbours_due(PeerBoxes& boxes);
  std::span<const std::byte> encode(std::span<const float> own);
  void choose_changed(std::span<const float> own);
  bool may_use(int peer, const Box::Taken& arrived, std::span<const float> model);
  void add_weight(double weight);
  std::span<const float> decode(const Box::Taken& arrived);
  void merge_plain(PeerBoxes& boxes, std::span<float> own);
  void merge_encoded(PeerBoxes& boxes, std::span<float> own);
  std::size_t coordinates_told() const;

  MailOptions options_;
  std::vector<int> sources_;  // Who sends to this worker.
  Screen screen_;
  std::unique_ptr<compression::Codec> codec_;  // Null where floats travel as they are.
  std::vector<std::byte> message_;
  std::vector<std::byte> received_;  // A message as it is decoded: where it arrives it may change.
  std::vector<float> decoded_;
  std::uint64_t turn_ = 0;  // Of the topology; counted by this worker alone.
  double weight_ = 1;       // In push-sum. Above 0: a worker never gives all of it away.
  double age_ = 0;
  std::optional<double> distance_;

  // Of top-k.
  compression::TopMagnitudes top_;
  std::vector<float> told_;     // Every coordinate as it was last sent to anybody.
  std::vector<float> changes_;  // Since then.
  std::vector<float> chosen_;   // The coordinates to send, zero elsewhere.
  std::span<const std::uint32_t> chosen_indices_;
};

/// The other kind. Gradients must all arrive, once each, where a model may be replaced by a newer
/// one: so nothing is ever replaced here, and everything that could not be sent yet is kept.
///
/// One worker's gradients on their way to all its neighbours, and theirs to it. None is lost: what
/// a peer has not taken yet is added up, in its box where floats travel as they are, otherwise (and
/// while the peer is just reading) on this side; what a codec left out goes with the next message.
/// With the gradients goes of which pieces of work they are.
///
/// There is a *lane* for each neighbour. A gradient is in one of three places, and moves down:
///
///   unsent       floats that the neighbour's box had no room for, added up
///   feedback     what the codec has left out of messages already sent (compressed only)
///   box          of the neighbour; added up there where floats travel as they are
///
/// The *leftovers* are the first two: what a neighbour was never told. Who leaves the run has to do
/// something with them, or they are lost (mean_leftovers, start_from). One thread.
class GradientMail {
 public:
  explicit GradientMail(const MailOptions& options);

  std::size_t message_bytes() const { return message_bytes_; }

  /// Those of one piece, of a step with this learning rate.
  void send(PeerBoxes& boxes, std::span<const float> gradients, double rate);

  /// Adds all that has arrived and says of which pieces it is.
  Pieces collect(PeerBoxes& boxes, std::span<float> sum);

  /// Messages that could not be used (Screen).
  std::int64_t left_out() const { return screen_.left_out(); }

  bool has_leftovers() const;

  /// Adds what `peer`, or each of them, was never told; says of which pieces it is, not counting
  /// those of which a part was told.
  Pieces add_leftovers(int peer, std::span<float> sum) const;
  Pieces add_leftovers(std::span<float> sum) const;

  /// Of which pieces all of them are, for the rate by which to apply them; where a part of every
  /// piece was told, as if they were one, of the last rate.
  Pieces leftover_pieces() const;

  /// From now on they count as told.
  void forget_leftovers();

  /// Gradients that were not told, of how many pieces they are, and by which rate to apply them.
  struct Leftovers {
    std::vector<float> gradients = {};
    double pieces = 0;
    double rate = 0;
  };

  /// What a peer was never told, in the mean over the peers; empty where that is nothing.
  Leftovers mean_leftovers() const;

  /// Before the first send(): no peer but `told` was told these gradients yet.
  void start_from(const Leftovers& leftovers, const std::set<int>& told = {});

 private:
  struct Lane {
    std::vector<float> unsent = {};  // Meaningful while `has_unsent`.
    Pieces unsent_pieces = {};
    bool has_unsent = false;
    bool lost = false;  // There is nobody to tell.
    std::optional<compression::ErrorFeedback> feedback = {};
  };

  bool is_plain() const { return decoder_ == nullptr; }
  std::span<const float> decode(const Box::Taken& arrived, std::size_t count);
  static void keep(Lane& lane, std::span<const float> gradients, const Pieces& pieces);
  void send_plain(PeerBoxes& boxes, int peer, std::span<const float> gradients);
  void send_encoded(PeerBoxes& boxes, int peer, std::span<const float> gradients);
  Pieces one_piece() const { return {.count = 1, .rates = last_rate_}; }
  std::unique_ptr<compression::Codec> new_codec(int peer) const;

  MailOptions options_;
  std::vector<int> sources_;  // Who sends to this worker.
  Screen screen_;
  std::unique_ptr<compression::Codec> decoder_;  // Null where floats travel as they are.
  std::vector<std::byte> received_;  // A message as it is decoded: where it arrives it may change.
  std::vector<float> decoded_;
  std::size_t message_bytes_;
  std::map<int, Lane> lanes_;  // By peer.
  double last_rate_ = 0;       // Of what was sent.
};

}  // namespace cohort::gossip
