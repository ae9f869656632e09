#include "group/array.h"

#include <algorithm>
#include <limits>
#include <new>
#include <numeric>

#include "base/fail.h"
#include "group/call.h"

namespace cohort::group {

std::size_t bytes_of(collective::ElementType type, std::span<const std::int64_t> shape) {
  if (std::ranges::find(shape, 0) != shape.end()) return 0;
  std::size_t bytes = collective::size_of(type);
  for (const std::int64_t size : shape) {
    const auto most = std::numeric_limits<std::int64_t>::max() / static_cast<std::int64_t>(bytes);
    if (size < 0 || size > most) {
      fail(ErrorCode::invalid, "{} elements in a dimension are none, or too many", size);
    }
    bytes *= static_cast<std::size_t>(size);
  }
  return bytes;
}

void check_array(const Array& array) {
  const std::size_t needed = bytes_of(array.type, array.shape);
  if (array.bytes.size() == needed) return;
  fail(ErrorCode::invalid, "a tensor of {} bytes was given as one of {}", array.bytes.size(),
       needed);
}

void check_arrays(std::span<const Array> arrays) {
  for (const Array& array : arrays) {
    check_array(array);
    if (array.type == arrays.front().type) continue;
    fail(ErrorCode::invalid, "the tensors of a list must have one type, but there are {} and {}",
         name_of(arrays.front().type), name_of(array.type));
  }
}

void check_combine(const Combine& combine, collective::ElementType type) {
  if (type == collective::ElementType::byte) {
    fail(ErrorCode::invalid, "bytes cannot be combined");
  }
  if (combine.mean && combine.how != collective::Reduction::sum) {
    fail(ErrorCode::invalid, "a mean is of a sum, not of a {}", collective::name_of(combine.how));
  }
  if (combine.mean && !collective::is_floating(type)) {
    fail(ErrorCode::invalid, "a mean of {} would have to be rounded; take the sum", name_of(type));
  }
}

Memory plain_memory(std::size_t bytes) {
  constexpr std::align_val_t kLine{64};
  const std::shared_ptr<std::byte> memory(
      static_cast<std::byte*>(::operator new(bytes, kLine)),
      [](std::byte* begin) { ::operator delete(begin, kLine); });
  return {{memory.get(), bytes}, memory};
}

std::size_t bytes_of_all(std::span<const Array> arrays) {
  const auto add = [](std::size_t sum, const Array& array) { return sum + array.bytes.size(); };
  return std::accumulate(arrays.begin(), arrays.end(), std::size_t{0}, add);
}

std::span<std::byte> pack(std::span<const Array> arrays, std::vector<std::byte>& packed) {
  const std::size_t size = bytes_of_all(arrays);
  if (packed.size() < size) packed.resize(size);
  auto place = packed.begin();
  for (const Array& array : arrays) place = std::ranges::copy(array.bytes, place).out;
  return std::span(packed).first(size);
}

void unpack(std::span<const std::byte> packed, std::span<const Array> arrays) {
  for (const Array& array : arrays) {
    std::ranges::copy(packed.first(array.bytes.size()), array.bytes.begin());
    packed = packed.subspan(array.bytes.size());
  }
}

}  // namespace cohort::group
