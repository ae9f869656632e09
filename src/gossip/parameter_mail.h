#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compression/top_magnitudes.h"
#include "gossip/boxes/peer_boxes.h"
#include "gossip/mail.h"

namespace cohort::gossip {

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

 private:
  bool is_sparse() const { return options_.compression.kind == "topk"; }
  std::vector<int> neighbours_due(PeerBoxes& boxes);
  std::span<const std::byte> encode(std::span<const float> own);
  void choose_changed(std::span<const float> own);
  void merge_plain(PeerBoxes& boxes, std::span<float> own);
  void merge_encoded(PeerBoxes& boxes, std::span<float> own);
  std::size_t coordinates_told() const;

  MailOptions options_;
  std::vector<int> sources_;                   // Who sends to this worker.
  std::unique_ptr<compression::Codec> codec_;  // Null where floats travel as they are.
  std::vector<std::byte> message_;
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

}  // namespace cohort::gossip
