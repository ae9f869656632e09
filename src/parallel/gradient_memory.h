#pragma once

#include <cohort/group.h>
#include <cohort/model.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compression/codec.h"

namespace cohort::parallel {

/// Scales the gradients of these parameters so that their norm, all taken as one vector, is at most
/// `most`, and returns what it was: torch::nn::utils::clip_grad_norm_, but summed in an order that
/// depends on sizes only, so ranks with other numbers of threads come to the same. Throws
/// Error(invalid) unless `most` is above 0.
double clip_norm(const std::vector<NamedTensor>& trained, double most);

/// The gradients of parameters in flat tensors, one for every type of parameters, which lie in memory
/// that all ranks of a host can read: so they are summed where they are.
///
///   flat of float32   [ weight 1 | bias 1 | weight 2 | … ]     each begins at a multiple of 64 bytes
///   flat of bfloat16  [ … ]
///
/// A gradient's *place* is its part, as a tensor. collect() brings into the places what stands in the
/// gradients, wherever autograd has put that; give() makes tensors in the places the gradients. A program that
/// sets gradients to zero in place leaves them where they are, so nothing is copied then; one that
/// drops them costs a copy a step.
class GradientMemory {
 public:
  /// All ranks call it, with parameters that require a gradient, each once. Throws Error(invalid) where
  /// there are none, and for one of a type that has no mean.
  GradientMemory(const Group& group, const std::vector<NamedTensor>& trained);

  /// How many parameters it has.
  std::size_t size() const { return entries_.size(); }

  /// used[i] becomes 1 where parameter i has a gradient, which is in its place then; else 0, and the
  /// place has zeros. Throws Error(unsupported) for sparse gradients.
  void collect(std::span<std::uint8_t> used);
  /// No gradients any more, and zeros in all places.
  void drop();
  /// The gradients of those that are used are what stands in the places.
  void give(std::span<const std::uint8_t> used);

  /// In a fixed order, the same on all ranks. What is between two places is zero after collect().
  const std::vector<torch::Tensor>& flats() const { return flats_; }
  /// Where the matrices of that type stand in their flat tensor.
  compression::CodecShape shape_of(torch::ScalarType type) const;

 private:
  struct Entry {
    std::string name;
    torch::Tensor parameter;
    torch::Tensor flat;  ///< Where its place is,
    torch::Tensor place;
    std::int64_t offset = 0;  ///< from this element on.
  };

  void lay_out(const Group& group);

  std::vector<Entry> entries_;
  std::vector<torch::Tensor> flats_;
  std::vector<torch::Tensor> paddings_;  // Of the flats, between two places.
};

}  // namespace cohort::parallel
