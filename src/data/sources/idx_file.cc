#include "data/sources/idx_file.h"

#include <memory>
#include <vector>

#include "base/checked.h"
#include "base/fail.h"
#include "data/sources/mapped_file.h"

namespace cohort {
namespace {

constexpr std::uint32_t kUnsignedBytes = 0x0800;  // The type in the third byte, dimensions after.

std::uint32_t big_endian(std::span<const std::byte> bytes) {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | static_cast<std::uint32_t>(bytes[i]);
  return value;
}

/// Header: the magic number, then the size of each dimension, four bytes each.
std::vector<std::int64_t> read_shape(const std::string& file, std::span<const std::byte> bytes,
                                     int dimensions) {
  const std::size_t header = 4 + 4 * static_cast<std::size_t>(dimensions);
  if (bytes.size() < header) {
    fail(ErrorCode::corrupt, "{} is truncated: its header alone takes {} bytes, it has {}", file,
         header, bytes.size());
  }
  const std::uint32_t expected = kUnsignedBytes | static_cast<std::uint32_t>(dimensions);
  const std::uint32_t magic = big_endian(bytes);
  if (magic != expected) {
    fail(ErrorCode::corrupt,
         "{} is not an IDX file of {} dimensions: it begins with {:#010x}, expected {:#010x}", file,
         dimensions, magic, expected);
  }
  std::vector<std::int64_t> shape;
  for (int i = 1; i <= dimensions; ++i) shape.push_back(big_endian(bytes.subspan(4 * i)));
  return shape;
}

void check_size(const std::string& file, std::size_t found,
                const std::vector<std::int64_t>& shape) {
  const auto header = static_cast<std::int64_t>(4 + 4 * shape.size());
  const auto values = checked_product(std::span(shape));
  const auto expected = values ? checked_sum(*values, header) : std::nullopt;
  if (expected == static_cast<std::int64_t>(found)) return;
  const bool shorter = !expected || static_cast<std::int64_t>(found) < *expected;
  const char* wrong = shorter ? "truncated" : "too long";
  fail(ErrorCode::corrupt,
       "{} is {}: its header announces {} values, so {} bytes were expected, "
       "but it has {}",
       file, wrong, fmt::join(shape, "x"),
       expected ? std::to_string(*expected) : std::string("far more"), found);
}

}  // namespace

torch::Tensor read_idx(const std::filesystem::path& path, int dimensions) {
  const auto mapped = std::make_shared<const MappedFile>(path);
  const std::span<const std::byte> bytes = mapped->bytes();
  const std::vector<std::int64_t> shape = read_shape(path.string(), bytes, dimensions);
  check_size(path.string(), bytes.size(), shape);
  auto* values = const_cast<std::byte*>(bytes.data()) + 4 + 4 * shape.size();
  return torch::from_blob(
      values, shape, [mapped](void*) {}, torch::kUInt8);
}

}  // namespace cohort
