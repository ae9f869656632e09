#pragma once

#include <cohort/job.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace cohort::compression {

/// Vectors of floats made into shorter messages. A *vector* is a part of the flat space (gradients,
/// changes, parameters); a *message* is bytes. Kinds and the layout of their messages: codecs.h.
/// Which aggregation fits which kind is for those who send (strategy/, server/, gossip/).

/// A matrix within a vector of floats: `rows` rows of `columns` floats each, one after the other.
struct MatrixShape {
  std::size_t offset = 0;
  std::size_t rows = 0;
  std::size_t columns = 0;
};

/// What there is of the matrices within [begin, end) of their vector, for whoever compresses a part
/// of it: of each the whole rows that lie there, with offsets relative to `begin`.
std::vector<MatrixShape> matrices_within(const std::vector<MatrixShape>& all, std::size_t begin,
                                         std::size_t end);

/// What a codec must know of the vectors it will see; all have the same length.
struct CodecShape {
  std::size_t count = 0;
  std::vector<MatrixShape> matrices = {};  ///< For lowrank; sorted, not overlapping.
};

/// What a codec remembers between messages. What the numbers mean is its kind's own business;
/// checkpoints keep them.
struct CodecMemory {
  std::vector<float> floats = {};
  std::vector<std::int64_t> numbers = {};

  bool operator==(const CodecMemory&) const = default;
};

/// Makes vectors into shorter messages, with loss, and messages into vectors again. It has no
/// memory of earlier vectors but what makes the next message better (lowrank starts from its last
/// factors) or different (int8 draws other random numbers); what a message left out is the caller's
/// to keep, see ErrorFeedback. One thread at a time may encode; decode(), add(), subtract() and
/// clear() change nothing here and may be called by any thread.
///
/// All spans of floats have the length of the codec's shape; others are Error(invalid). The message
/// of the same vector is the same on every machine, given the same options, shape, seed and memory.
class Codec {
 public:
  enum class Speaks { of_all_places, of_some_places };
  explicit Codec(Speaks speaks = Speaks::of_all_places)
      : chooses_(speaks == Speaks::of_some_places) {}
  virtual ~Codec() = default;

  /// The longest message encode() makes, in bytes.
  virtual std::size_t max_bytes() const = 0;

  /// Writes the message of `values` and returns its length. `message` has max_bytes() of room.
  virtual std::size_t encode(std::span<const float> values, std::span<std::byte> message) = 0;

  /// Replaces `values` by what the message says. Throws Error(corrupt) for a message that is not
  /// one of this codec and shape: every length and index is checked before anything is written.
  virtual void decode(std::span<const std::byte> message, std::span<float> values) const = 0;

  /// Adds what the message says to `sum`; checks it as decode() does. Costs no more than the
  /// message is long where it speaks of few places (topk).
  virtual void add(std::span<const std::byte> message, std::span<float> sum) const = 0;

  /// Leaves in `values`, which the message was made of, what it did not say. A difference that is
  /// not finite is left out, so that one bad value is not carried along for ever.
  virtual void subtract(std::span<const std::byte> message, std::span<float> values) const = 0;

  /// Whether a message speaks of some places only (topk).
  bool chooses() const { return chooses_; }

  /// Sets the places of which the message speaks to zero.
  virtual void clear(std::span<const std::byte> message, std::span<float> values) const = 0;

  /// What it remembers of earlier messages; nothing for most. A new codec of the same options,
  /// shape and seed that recalls it makes the messages that this one would make next.
  virtual CodecMemory memory() const { return {}; }

  /// Goes on from memory() of another. What is not one of this codec is ignored.
  virtual void recall(const CodecMemory& /*memory*/) {}

 private:
  const bool chooses_;
};

/// The codec `options.kind` names ("none" is one: plain floats). `seed` fixes its random numbers;
/// give every worker another one.
std::unique_ptr<Codec> make_codec(const CompressionOptions& options, const CodecShape& shape,
                                  std::uint64_t seed);

/// The kinds make_codec knows.
const std::vector<std::string>& codec_kinds();

/// What others may know of a codec without making one.
struct CodecRow {
  /// How gradients of it are summed over ranks (collective/compressed/).
  enum class Sum {
    of_floats,        ///< As they are.
    by_owners,        ///< The owner of each segment adds the messages up and sends one of the sum.
    of_all_messages,  ///< Everyone gets everybody's message, and adds them up.
    of_factors,       ///< Factors are summed, not messages.
  };

  std::string name;
  std::vector<std::string> keys;  ///< Of `[strategy.compression]`, that only some read.
  bool of_models;  ///< It keeps the values it sends near enough to send whole models, not changes.
  Sum sum;
  bool with_loose_momentum;  ///< Peers that do not go in step learn with momentum, too.
  std::string words;
};
const std::vector<CodecRow>& codec_table();

/// The row of a kind. Throws Error(invalid) with the nearest known name.
const CodecRow& codec_row(const std::string& kind);

/// What job files write instead of a codec's name to have one picked by trying.
inline constexpr const char* kAutoCodec = "auto";

}  // namespace cohort::compression
