#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace cohort {

/// Floats that stand in several places, as if one after the other. T is float or const float.
template <class T>
class FloatList {
 public:
  void add(std::span<T> floats) {
    spans_.push_back(floats);
    size_ += floats.size();
  }

  std::size_t size() const { return size_; }

  /// `count` of them from `begin` on, where they stand; there must be as many.
  std::vector<std::span<T>> part(std::size_t begin, std::size_t count) const {
    std::vector<std::span<T>> found;
    for (std::span<T> span : spans_) {
      const std::size_t skipped = std::min(begin, span.size());
      begin -= skipped;
      const std::size_t taken = std::min(count, span.size() - skipped);
      count -= taken;
      if (taken > 0) found.push_back(span.subspan(skipped, taken));
    }
    return found;
  }

  void put(std::size_t begin, std::span<const float> floats) const {
    for (const std::span<T> place : part(begin, floats.size())) {
      std::ranges::copy(floats.first(place.size()), place.begin());
      floats = floats.subspan(place.size());
    }
  }

 private:
  std::vector<std::span<T>> spans_;
  std::size_t size_ = 0;
};

}  // namespace cohort
