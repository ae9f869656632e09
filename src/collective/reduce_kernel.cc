#include "collective/reduce_kernel.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <type_traits>

#include "base/vectorize.h"
#include "collective/sum_kernel.h"

namespace cohort::collective {
namespace {

/// The upper half of a float's bits.
struct BFloat16 {
  std::uint16_t bits;
};

/// In what a type is computed, and the way there and back.
template <class T>
struct Arithmetic {
  using Wide = T;
  static constexpr Wide widen(T value) { return value; }
  static constexpr T narrow(Wide value) { return value; }
};

template <>
struct Arithmetic<BFloat16> {
  using Wide = float;
  static float widen(BFloat16 value) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
  }
  /// To the nearest, ties to even; a NaN stays one although its set bits may be the lower ones.
  static BFloat16 narrow(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t nearest = bits + 0x7fff + ((bits >> 16) & 1);
    const std::uint32_t kept = value != value ? bits | 0x00400000 : nearest;
    return {static_cast<std::uint16_t>(kept >> 16)};
  }
};

/// A byte that is one where it is not 0: what another rank sends may be any.
struct Truth {
  std::uint8_t byte;
};

template <>
struct Arithmetic<Truth> {
  using Wide = bool;
  static constexpr bool widen(Truth value) { return value.byte != 0; }
  static constexpr Truth narrow(bool value) { return {static_cast<std::uint8_t>(value)}; }
};

// Whole numbers wrap around: they are computed as unsigned ones, since signed overflow is undefined,
// and in no narrower type than int, to which C++ promotes.
template <class T, class Compute>
constexpr T wrapping(T a, T b, Compute compute) {
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<std::common_type_t<T, int>>;
    return static_cast<T>(compute(static_cast<Unsigned>(a), static_cast<Unsigned>(b)));
  } else {
    return compute(a, b);
  }
}

struct Sum {
  template <class T>
  static constexpr T of(T a, T b) {
    return wrapping(a, b, [](auto x, auto y) { return x + y; });
  }
  static constexpr bool of(bool a, bool b) { return a | b; }
};

struct Product {
  template <class T>
  static constexpr T of(T a, T b) {
    return wrapping(a, b, [](auto x, auto y) { return x * y; });
  }
  static constexpr bool of(bool a, bool b) { return a & b; }
};

// A comparison with NaN is false, so it is asked for: it wins on either side.
struct Min {
  template <class T>
  static constexpr T of(T a, T b) {
    return b < a || b != b ? b : a;
  }
};

struct Max {
  template <class T>
  static constexpr T of(T a, T b) {
    return b > a || b != b ? b : a;
  }
};

template <class T, class Op>
COHORT_VECTORIZE void combine(typename Arithmetic<T>::Wide* result, const T* source,
                              std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    result[i] = Op::of(result[i], Arithmetic<T>::widen(source[i]));
  }
}

/// Block by block, in the cache; written last, so that `out` is read before it is overwritten
/// wherever it stands among the sources.
template <class T, class Op>
void fold(std::span<std::byte> out, std::span<const std::byte* const> sources) {
  constexpr std::size_t kBlock = 1024;
  typename Arithmetic<T>::Wide result[kBlock];
  const std::size_t size = out.size() / sizeof(T);
  T* const to = reinterpret_cast<T*>(out.data());
  for (std::size_t begin = 0; begin < size; begin += kBlock) {
    const std::size_t count = std::min(kBlock, size - begin);
    const T* const first = reinterpret_cast<const T*>(sources[0]) + begin;
    std::transform(first, first + count, result, Arithmetic<T>::widen);
    for (const std::byte* source : sources.subspan(1)) {
      combine<T, Op>(result, reinterpret_cast<const T*>(source) + begin, count);
    }
    std::transform(result, result + count, to + begin, Arithmetic<T>::narrow);
  }
}

template <class T>
void reduce_as(Reduction how, std::span<std::byte> out, std::span<const std::byte* const> sources) {
  switch (how) {
    case Reduction::sum:
      return fold<T, Sum>(out, sources);
    case Reduction::product:
      return fold<T, Product>(out, sources);
    case Reduction::min:
      return fold<T, Min>(out, sources);
    case Reduction::max:
      return fold<T, Max>(out, sources);
  }
}

/// The sums that training is made of have loops of their own.
template <Number T>
void sum_or_reduce(Reduction how, std::span<std::byte> out,
                   std::span<const std::byte* const> sources) {
  constexpr std::size_t kMany = 64;
  if (how != Reduction::sum || sources.size() > kMany) return reduce_as<T>(how, out, sources);
  const T* numbers[kMany];
  std::ranges::transform(
      sources, numbers, [](const std::byte* source) { return reinterpret_cast<const T*>(source); });
  sum_of<T>({reinterpret_cast<T*>(out.data()), out.size() / sizeof(T)}, {numbers, sources.size()});
}

template <class T>
void divide_as(std::span<std::byte> bytes, int ranks) {
  using Wide = typename Arithmetic<T>::Wide;
  const std::span values(reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T));
  for (T& value : values) {
    value = Arithmetic<T>::narrow(Arithmetic<T>::widen(value) / static_cast<Wide>(ranks));
  }
}

}  // namespace

void reduce_of(Reducer reducer, std::span<std::byte> out,
               std::span<const std::byte* const> sources) {
  switch (reducer.type) {
    case ElementType::f32:
      return sum_or_reduce<float>(reducer.how, out, sources);
    case ElementType::f64:
      return sum_or_reduce<double>(reducer.how, out, sources);
    case ElementType::i64:
      return sum_or_reduce<std::int64_t>(reducer.how, out, sources);
    case ElementType::bf16:
      return reduce_as<BFloat16>(reducer.how, out, sources);
    case ElementType::i32:
      return reduce_as<std::int32_t>(reducer.how, out, sources);
    case ElementType::u8:
      return reduce_as<std::uint8_t>(reducer.how, out, sources);
    case ElementType::boolean:
      return reduce_as<Truth>(reducer.how, out, sources);
    case ElementType::byte:
      return;
  }
}

void divide(Elements floats, int ranks) {
  if (ranks == 1) return;
  if (floats.type() == ElementType::f32) divide_as<float>(floats.bytes(), ranks);
  if (floats.type() == ElementType::f64) divide_as<double>(floats.bytes(), ranks);
  if (floats.type() == ElementType::bf16) divide_as<BFloat16>(floats.bytes(), ranks);
}

}  // namespace cohort::collective
