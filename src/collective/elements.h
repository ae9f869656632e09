#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <type_traits>

namespace cohort::collective {

/// What collectives work on. Cohort's own are floats, doubles and 64-bit whole numbers, which have
/// C++ types here; users' tensors have more types, which are known by name alone. All of them can
/// be reduced (reduce_kernel.h) but bytes, which can only be moved.
template <class T>
concept Number = std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, std::int64_t>;
template <class T>
concept Element = Number<T> || std::same_as<T, std::byte>;

enum class ElementType : std::uint8_t { f32, f64, i64, byte, bf16, i32, u8, boolean };

template <Element T>
constexpr ElementType element_type() {
  if constexpr (std::same_as<T, float>) return ElementType::f32;
  if constexpr (std::same_as<T, double>) return ElementType::f64;
  if constexpr (std::same_as<T, std::int64_t>) return ElementType::i64;
  return ElementType::byte;
}

constexpr std::size_t size_of(ElementType type) {
  constexpr std::size_t sizes[] = {4, 8, 8, 1, 2, 4, 1, 1};
  return sizes[static_cast<std::size_t>(type)];
}

/// For sentences: "5 floats".
constexpr const char* plural_of(ElementType type) {
  constexpr const char* names[] = {"floats",
                                   "doubles",
                                   "whole numbers",
                                   "bytes",
                                   "bfloat16 numbers",
                                   "32-bit whole numbers",
                                   "8-bit whole numbers",
                                   "booleans"};
  return names[static_cast<std::size_t>(type)];
}

/// A view of somebody's elements of one type, whichever that is: made of a span, a vector or an
/// array of them, which must outlive it. With it the algorithms are compiled once, over bytes, and
/// the calls still take typed buffers.
class Elements {
 public:
  template <class Range>
  // NOLINTNEXTLINE(google-explicit-constructor): the calls shall read as if there were four of
  // each.
  Elements(Range&& range) requires std::ranges::contiguous_range<Range> &&
      Element<std::ranges::range_value_t<Range>> &&
      (!std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<Range>>>)
      : bytes_(
            std::as_writable_bytes(std::span(std::ranges::data(range), std::ranges::size(range)))),
        type_(element_type<std::ranges::range_value_t<Range>>()) {}

  /// Of any type. The bytes are a whole number of elements, and stand where such elements may.
  Elements(std::span<std::byte> bytes, ElementType type) : bytes_(bytes), type_(type) {}

  ElementType type() const { return type_; }
  std::size_t size() const { return bytes_.size() / size_of(type_); }
  bool empty() const { return bytes_.empty(); }
  std::span<std::byte> bytes() const { return bytes_; }

  Elements subspan(std::size_t begin, std::size_t count) const {
    Elements part = *this;
    part.bytes_ = bytes_.subspan(begin * size_of(type_), count * size_of(type_));
    return part;
  }

 private:
  std::span<std::byte> bytes_;
  ElementType type_;
};

/// Elements of a type that has a C++ type here and can be summed.
class Numbers : public Elements {
 public:
  template <class Range>
  // NOLINTNEXTLINE(google-explicit-constructor): as above.
  Numbers(Range&& range) requires std::constructible_from<Elements, Range> &&
      Number<std::ranges::range_value_t<Range>> : Elements(range) {}

  Numbers subspan(std::size_t begin, std::size_t count) const {
    return Numbers(Elements::subspan(begin, count));
  }

  /// Calls `visit` with them as a span of their type.
  template <class Visit>
  void as_span(Visit&& visit) const {
    if (type() == ElementType::f32) return visit(span_of<float>());
    if (type() == ElementType::f64) return visit(span_of<double>());
    visit(span_of<std::int64_t>());
  }

 private:
  explicit Numbers(const Elements& elements) : Elements(elements) {}

  template <Number T>
  std::span<T> span_of() const {
    return {reinterpret_cast<T*>(bytes().data()), size()};
  }
};

}  // namespace cohort::collective
