#include "formats/idx_file.h"

#include <sys/mman.h>

#include <string>

#include "base/fail.h"
#include "base/files.h"
#include "base/integers.h"

namespace cohort::formats {
namespace {

constexpr std::uint32_t kUnsignedBytes = 0x0800;  // The type in the third byte, dimensions after.

/// The first four bytes as a number.
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

/// The file must be exactly as long as its header says.
void check_idx_size(const std::string& file, std::size_t found,
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

MappedFile::MappedFile(const std::filesystem::path& path) {
  const InputFile file(path);
  size_ = static_cast<std::size_t>(file.size());
  if (size_ == 0) return;  // Nothing cannot be mapped.
  void* data = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file.fd(), 0);
  if (data == MAP_FAILED) fail_errno("cannot map " + path.string());
  data_ = static_cast<const std::byte*>(data);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

IdxFile::IdxFile(const std::filesystem::path& path, int dimensions)
    : file_(path), shape_(read_shape(path.string(), file_.bytes(), dimensions)) {
  check_idx_size(path.string(), file_.bytes().size(), shape_);
  values_ = file_.bytes().subspan(4 + 4 * shape_.size());
}

}  // namespace cohort::formats
