#include <algorithm>

#include "base/fail.h"
#include "compression/codecs.h"
#include "compression/float_bits.h"
#include "compression/low_rank.h"

namespace cohort::compression {
namespace {

/// One worker's use of LowRank: all steps one after the other, with nothing summed in between.
class LowrankCodec : public Codec {
 public:
  LowrankCodec(const CodecShape& shape, std::int64_t rank, std::uint64_t seed)
      : count_(shape.count), factors_(shape, rank, seed), parts_(floats()) {}

  std::size_t max_bytes() const override { return floats() * sizeof(float); }

  std::size_t encode(std::span<const float> values, std::span<std::byte> message) override {
    check_count("lowrank", values.size(), count_);
    const auto [left, right, plain] = cut(std::span(parts_));
    factors_.project(values, left);
    factors_.orthonormalise(left);
    factors_.project_back(values, left, right);
    factors_.gather_plain(values, plain);
    factors_.start_from(right);
    std::ranges::copy(std::as_bytes(std::span(parts_)), message.begin());
    return max_bytes();
  }

  void decode(std::span<const std::byte> message, std::span<float> values) const override {
    const std::vector<float> parts = checked(message, values);
    const auto [left, right, plain] = cut(std::span(parts));
    factors_.clear_matrices(values);
    factors_.add_product({left, right}, values);
    factors_.for_each_plain(values, plain, [](std::span<float> to, std::span<const float> from) {
      std::ranges::copy(from, to.begin());
    });
  }

  void add(std::span<const std::byte> message, std::span<float> sum) const override {
    const std::vector<float> parts = checked(message, sum);
    const auto [left, right, plain] = cut(std::span(parts));
    factors_.add_product({left, right}, sum);
    factors_.for_each_plain(sum, plain, add_floats);
  }

  void subtract(std::span<const std::byte> message, std::span<float> values) const override {
    const std::vector<float> parts = checked(message, values);
    const auto [left, right, plain] = cut(std::span(parts));
    factors_.subtract_product({left, right}, values);
    factors_.for_each_plain(values, plain, subtract_floats);
  }

  void clear(std::span<const std::byte> message, std::span<float> values) const override {
    checked(message, values);
    std::ranges::fill(values, 0.0F);
  }

  CodecMemory memory() const override { return factors_.memory(); }
  void recall(const CodecMemory& memory) override { factors_.recall(memory); }

 private:
  /// The three parts of a message: the floats of all left factors, then of all right ones, then the
  /// plain ones, in the order of the vector. Its length follows from the shape alone.
  template <class Floats>
  struct Parts {
    Floats left;
    Floats right;
    Floats plain;
  };

  std::size_t floats() const {
    return factors_.left_size() + factors_.right_size() + factors_.plain_size();
  }

  template <class Floats>
  Parts<Floats> cut(Floats all) const {
    const std::size_t left = factors_.left_size();
    const std::size_t right = factors_.right_size();
    return {all.first(left), all.subspan(left, right), all.subspan(left + right)};
  }

  /// The message as floats on their own boundaries.
  std::vector<float> checked(std::span<const std::byte> message,
                             std::span<const float> values) const {
    check_count("lowrank", values.size(), count_);
    check_length("lowrank", message.size(), max_bytes());
    std::vector<float> parts(floats());
    std::ranges::copy(message, std::as_writable_bytes(std::span(parts)).begin());
    const auto [left, right, plain] = cut(std::span<const float>(parts));
    if (!all_finite(left) || !all_finite(right)) {
      fail(ErrorCode::corrupt, "a lowrank message has a factor that is not finite");
    }
    return parts;
  }

  std::size_t count_;
  LowRank factors_;
  std::vector<float> parts_;  // Of the message being made; kept to spare the allocation.
};

}  // namespace

std::unique_ptr<Codec> make_lowrank_codec(const CodecShape& shape, std::int64_t rank,
                                          std::uint64_t seed) {
  return std::make_unique<LowrankCodec>(shape, rank, seed);
}

}  // namespace cohort::compression
