#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "compression/error_feedback.h"
#include "gossip/mail_options.h"
#include "gossip/peer_boxes.h"

namespace cohort {

/// One worker's gradients on their way to all its neighbours, and theirs to it. None is lost: what
/// a peer has not taken yet is added up, in its box where floats travel as they are, otherwise (and
/// while the peer is just reading) on this side; what a codec left out goes with the next message.
/// With the gradients goes of how many pieces of work they are, so that whoever applies a sum knows
/// which share of a step it is.
class GradientMail {
 public:
  explicit GradientMail(const MailOptions& options);

  std::size_t message_bytes() const { return message_bytes_; }

  /// Those of one piece.
  void send(PeerBoxes& boxes, std::span<const float> gradients);

  /// Adds all that has arrived and says of how many pieces it is: 0 where nothing has.
  double collect(PeerBoxes& boxes, std::span<float> sum);

  bool has_leftovers() const;

  /// Adds what `peer` was never told, which it then counts as told; says of how many pieces it
  /// is, not counting those of which a part was told.
  double add_leftovers(int peer, std::span<float> sum);

  /// Gradients that were not told, and of how many pieces they are.
  struct Leftovers {
    std::vector<float> gradients = {};
    double pieces = 0;
  };

  /// What a peer was never told, in the mean over the peers; empty where that is nothing.
  Leftovers mean_leftovers() const;

  /// Before the first send(): no peer was told these gradients yet.
  void start_from(const Leftovers& leftovers);

 private:
  struct Lane {
    std::vector<float> unsent = {};  // Meaningful while `has_unsent`.
    double unsent_pieces = 0;
    bool has_unsent = false;
    std::optional<ErrorFeedback> feedback = {};
  };

  bool is_plain() const { return decoder_ == nullptr; }
  static void add_untold(const Lane& lane, std::span<float> sum);
  static void keep(Lane& lane, std::span<const float> gradients, double pieces);
  void send_plain(PeerBoxes& boxes, int peer, std::span<const float> gradients);
  void send_encoded(PeerBoxes& boxes, int peer, std::span<const float> gradients);
  std::unique_ptr<Codec> new_codec(int peer) const;

  MailOptions options_;
  std::vector<int> sources_;
  std::unique_ptr<Codec> decoder_;  // Null where floats travel as they are.
  std::size_t message_bytes_;
  std::map<int, Lane> lanes_;  // By peer.
};

}  // namespace cohort
