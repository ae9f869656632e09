
#include <algorithm>
#include <cmath>

#include "base/fail.h"
#include "base/names.h"
#include "base/random.h"
#include "base/vectorize.h"
#include "compression/float_bits.h"
#include "gossip/mail.h"
#include "gossip/model_age.h"
#include "gossip/push_sum.h"

namespace cohort::gossip {
namespace {

// A worker whose peers have not answered for long still sends its newest parameters, but no more of
// its weight: halved again and again it would vanish.
constexpr double kLeastWeight = 1.0 / 1024;

// All weights together are the number of workers, and rounding does not make them a hundredth more.
constexpr double kMostWeight = 1.01;

// Of the steps of the job. A model has so many at the end; a piece that finds it ahead of that adds
// half its share all the same (share_of_piece), so that it can come to half as many more.
constexpr double kMostAge = 2;

// A turn whose neighbours are all lost goes to the next ones, until so many were skipped: more than
// the exponential topology has distances.
constexpr int kTurns = 32;

COHORT_VECTORIZE void subtract(const float* a, const float* b, std::size_t count, float* out) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) out[i] = a[i] - b[i];
}

std::uint64_t codec_seed(const GossipPlace& place) {
  return Random(place.seed, static_cast<std::uint64_t>(place.rank)).next();
}

}  // namespace

const std::vector<std::string>& ParameterMail::codecs() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> of_models;
    for (const compression::CodecRow& row : compression::codec_table()) {
      if (row.of_models) of_models.push_back(row.name);
    }
    return of_models;
  }();
  return names;
}

ParameterMail::ParameterMail(const MailOptions& options, std::span<const float> start)
    : options_(options),
      sources_(sources_of(options.topology, options.place.rank, options.place.world)),
      screen_({.weight = kMostWeight * options.place.world,
               .age = kMostAge * (options.job.steps + 1)}) {
  const std::string& kind = options.compression.kind;
  if (std::ranges::count(codecs(), kind) == 0) {
    fail(ErrorCode::invalid,
         "gossip cannot send parameters compressed by \"{}\"; it can with {}, or send gradients",
         kind, one_of(codecs()));
  }
  if (kind == "none") return;
  codec_ = compression::make_codec(options.compression, options.shape, codec_seed(options.place));
  message_.resize(codec_->max_bytes());
  decoded_.resize(options.shape.count);
  if (!is_sparse()) return;
  told_.assign(start.begin(), start.end());
  changes_.resize(told_.size());
  chosen_.resize(told_.size());
}

std::size_t ParameterMail::message_bytes() const {
  return codec_ ? codec_->max_bytes() : options_.shape.count * sizeof(float);
}

// The weight is cut evenly among this worker and those who are due, and a share leaves with each
// message that is taken. What did not fit stays here, and what a new message has replaced comes
// back: so the weights of all workers and boxes together are always the number of workers.
void ParameterMail::send(PeerBoxes& boxes, std::span<const float> own) {
  const auto due = neighbours_due(boxes);
  if (due.empty()) return;
  const auto message = encode(own);
  const double share = weight_ < kLeastWeight ? 0 : weight_ / static_cast<double>(due.size() + 1);
  const auto when = is_sparse() ? WhenFull::refuse : WhenFull::replace;
  bool told = false;
  for (const int peer : due) {
    if (!boxes.put(peer, {.weight = share, .message = message, .age = age_}, when)) continue;
    weight_ -= share;
    told = true;
  }
  weight_ += boxes.returned();
  if (!told) return;
  for (const std::uint32_t index : chosen_indices_) told_[index] = own[index];
}

void ParameterMail::merge(PeerBoxes& boxes, std::span<float> own) {
  weight_ += boxes.returned();
  codec_ ? merge_encoded(boxes, own) : merge_plain(boxes, own);
}

std::vector<int> ParameterMail::neighbours_due(PeerBoxes& boxes) {
  std::vector<int> due;
  for (int skipped = 0; due.empty() && skipped < kTurns; ++skipped) {
    due = neighbours(options_.topology, options_.place, turn_++);
    std::erase_if(due, [&](int peer) { return boxes.attendance().lost(peer); });
  }
  if (is_sparse()) std::erase_if(due, [&](int peer) { return !boxes.empty(peer); });
  return due;
}

std::span<const std::byte> ParameterMail::encode(std::span<const float> own) {
  if (!codec_) return std::as_bytes(own);
  if (is_sparse()) choose_changed(own);
  return std::span(message_).first(codec_->encode(is_sparse() ? chosen_ : own, message_));
}

void ParameterMail::choose_changed(std::span<const float> own) {
  subtract(own.data(), told_.data(), own.size(), changes_.data());
  for (const std::uint32_t index : chosen_indices_) chosen_[index] = 0;
  chosen_indices_ = top_.select(changes_, coordinates_told());
  for (const std::uint32_t index : chosen_indices_) chosen_[index] = own[index];
}

/// How many coordinates a message has.
std::size_t ParameterMail::coordinates_told() const {
  const std::size_t all = options_.shape.count;
  if (!is_sparse()) return all;
  const double wanted = std::ceil(options_.compression.ratio * static_cast<double>(all));
  return std::clamp<std::size_t>(static_cast<std::size_t>(wanted), 1, all);
}

/// A model that is left out leaves its weight here, where that is one: it is nobody else's.
bool ParameterMail::may_use(int peer, const Box::Taken& arrived, std::span<const float> model) {
  if (screen_.passes(peer, arrived, !model.empty() && compression::all_finite(model))) return true;
  if (screen_.is_weight(arrived.weight())) add_weight(arrived.weight());
  return false;
}

/// Never more than all have together, or the others would leave out what this worker sends.
void ParameterMail::add_weight(double weight) {
  weight_ = std::min(weight_ + weight, kMostWeight * options_.place.world);
}

// All at once, where they are: one pass over memory, however many have arrived. The weights decide
// by how old each model is beside the newest of them (weight_of_lag), the own one included.
void ParameterMail::merge_plain(PeerBoxes& boxes, std::span<float> own) {
  std::vector<Box::Taken> taken;
  double newest = age_;
  for (const int peer : sources_) {
    auto arrived = boxes.take(peer);
    if (!arrived) continue;
    const auto model =
        read_or_none([&] { return floats_of_message(arrived->message(), own.size()); });
    if (!may_use(peer, *arrived, model)) continue;
    newest = std::max(newest, arrived->age());
    taken.push_back(std::move(*arrived));
  }
  if (taken.empty()) return;

  const double own_weight = weight_ * weight_of_lag(newest - age_);
  double ages = own_weight * age_;
  std::vector<WeightedModel> models;
  for (const Box::Taken& arrived : taken) {
    const double weight = arrived.weight() * weight_of_lag(newest - arrived.age());
    models.push_back({floats_of_message(arrived.message(), own.size()), weight});
    ages += weight * arrived.age();
    add_weight(arrived.weight());
  }
  const Merged merged = merge_models(own, own_weight, models);
  age_ = ages / merged.weight;
  distance_ = merged.distance;
}

/// Until the next call. What is decoded is a copy: who shares the memory could change the message
/// between the look at it and its use.
std::span<const float> ParameterMail::decode(const Box::Taken& arrived) {
  received_.assign(arrived.message().begin(), arrived.message().end());
  codec_->decode(received_, decoded_);
  return decoded_;
}

// One by one, since there is room for one decoded model. With top-k a message speaks of a part of
// the coordinates only, and moves the age by as much.
void ParameterMail::merge_encoded(PeerBoxes& boxes, std::span<float> own) {
  const double part =
      static_cast<double>(coordinates_told()) / static_cast<double>(options_.shape.count);
  double distance = 0;
  int count = 0;
  for (const int peer : sources_) {
    const auto arrived = boxes.take(peer);
    if (!arrived) continue;
    if (!may_use(peer, *arrived, read_or_none([&] { return decode(*arrived); }))) continue;
    const double ahead = arrived->age() - age_;
    const double own_weight = weight_ * weight_of_lag(ahead);
    const WeightedModel model{decoded_, arrived->weight() * weight_of_lag(-ahead)};
    const Merged merged = is_sparse() ? merge_coordinates(own, own_weight, model)
                                      : merge_models(own, own_weight, {&model, 1});
    add_weight(arrived->weight());
    age_ += part * model.weight / merged.weight * ahead;
    distance += merged.distance;
    ++count;
  }
  if (count > 0) distance_ = distance / count;
}

}  // namespace cohort::gossip
