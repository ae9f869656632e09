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
class GradientMail {
 public:
  explicit GradientMail(const MailOptions& options);

  std::size_t message_bytes() const { return message_bytes_; }

  void send(PeerBoxes& boxes, std::span<const float> gradients);

  /// Adds all that has arrived; true if anything has.
  bool collect(PeerBoxes& boxes, std::span<float> sum);

  bool has_leftovers() const;

  /// Adds what `peer` was never told, which it then counts as told.
  void add_leftovers(int peer, std::span<float> sum);

 private:
  struct Lane {
    std::vector<float> unsent = {};  // Meaningful while `has_unsent`.
    bool has_unsent = false;
    std::optional<ErrorFeedback> feedback = {};
  };

  bool is_plain() const { return decoder_ == nullptr; }
  static void keep(Lane& lane, std::span<const float> gradients);
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
