#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "compression/error_feedback.h"
#include "gossip/boxes/peer_boxes.h"
#include "gossip/mail.h"

namespace cohort::gossip {

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
  static void keep(Lane& lane, std::span<const float> gradients, const Pieces& pieces);
  void send_plain(PeerBoxes& boxes, int peer, std::span<const float> gradients);
  void send_encoded(PeerBoxes& boxes, int peer, std::span<const float> gradients);
  Pieces one_piece() const { return {.count = 1, .rates = last_rate_}; }
  std::unique_ptr<compression::Codec> new_codec(int peer) const;

  MailOptions options_;
  std::vector<int> sources_;                     // Who sends to this worker.
  std::unique_ptr<compression::Codec> decoder_;  // Null where floats travel as they are.
  std::size_t message_bytes_;
  std::map<int, Lane> lanes_;  // By peer.
  double last_rate_ = 0;       // Of what was sent.
};

}  // namespace cohort::gossip
