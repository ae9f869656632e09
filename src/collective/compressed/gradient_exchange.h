#pragma once

#include <cohort/job.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "compression/codec.h"
#include "compression/error_feedback.h"
#include "transport/transport.h"

namespace cohort::collective {

/// Sums of gradients of which less than all travels.
///
/// Vocabulary. A *codec* (compression/codec.h) makes a *message* of floats, shorter than these and
/// not quite the same. The *rest* is what a message has left out; it is added to the next gradients
/// before they are encoded (*error feedback*), so nothing is lost, it only comes late. A *way* is
/// an order of messages between the ranks; every kind of codec has one that fits it:
///
///   way      file                 codecs             a rank sends
///   whole    gradient_exchange.cc none               as an all-reduce of floats
///   segment  segment_exchange.cc  fp16, bf16, int8   2 (world - 1) / world of a message of all
///   gather   gather_exchange.cc   sign, topk         world - 1 messages of all
///   lowrank  lowrank_exchange.cc  lowrank            two all-reduces of factors
///
/// In every way all ranks end with the same bits, because all make the result of the same bytes in
/// the same order; a rank also decodes what it has encoded itself.

/// What one rank of an exchange keeps, so that another one can go on from it. It is part of
/// checkpoints.
struct ExchangeMemory {
  std::vector<float> rest = {};         ///< What has not travelled, place by place.
  std::vector<float> velocity = {};     ///< See ErrorFeedback; also place by place.
  compression::CodecMemory codec = {};  ///< Of the codecs; of one rank in one world.
};

/// One rank's end of an exchange. All ranks make the same calls, each on one thread at a time.
class GradientExchange {
 public:
  virtual ~GradientExchange() = default;

  /// Replaces the gradients by nearly their sum over the ranks: the same bits on all. What the
  /// messages leave out is kept for the next call. Throws Error naming the rank to blame; then the
  /// transport is closed, the gradients are undefined, and what is kept is as it was before.
  virtual void sum(std::span<float> gradients) = 0;

  /// Adds what has not travelled so far: for whoever sends the next gradients in another way.
  virtual void add_rest(std::span<float> gradients) const = 0;

  /// What this rank keeps from one call of sum() to the next.
  virtual ExchangeMemory memory() const { return {}; }

  /// After sum() has thrown: what this rank would keep had it come to its end. On other ranks it
  /// may have, with all that this one has sent. What this one cannot know is as in memory().
  virtual ExchangeMemory memory_if_done() const { return memory(); }

  /// Before the first sum(); all ranks call it together, each with what it has. What does not fit
  /// (other sizes, another rank or world where that matters) is left out.
  virtual void recall(const ExchangeMemory& /*memory*/) {}
};

struct ExchangeOptions {
  transport::Transport& transport;  ///< For nothing else; must outlive the exchange.
  compression::CodecShape shape;
  CompressionOptions compression;
  compression::WorkerMomentum momentum = {};  ///< Of ErrorFeedback, for topk and sign.
  std::uint64_t seed = 0;
  std::string algorithm = "auto";  ///< Where whole floats are all-reduced.
  Duration timeout = std::chrono::seconds(60);
};

/// The exchange that fits `compression.kind`, one of codec_kinds(); Error(invalid) for another one.
std::unique_ptr<GradientExchange> make_gradient_exchange(const ExchangeOptions& options);

/// In a few words, how gradients of that kind travel.
std::string exchange_words(const CompressionOptions& compression);

// For the ways themselves.

std::unique_ptr<GradientExchange> make_segment_exchange(const ExchangeOptions& options);
std::unique_ptr<GradientExchange> make_gather_exchange(const ExchangeOptions& options);
std::unique_ptr<GradientExchange> make_lowrank_exchange(const ExchangeOptions& options);

/// For codecs that make random numbers: another seed for every (rank, purpose).
std::uint64_t exchange_seed(const ExchangeOptions& options, int purpose);

}  // namespace cohort::collective
