#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace cohort::formats {

/// A whole file as read-only memory, shared with all processes that map it. It must not be changed
/// in place while it is mapped.
class MappedFile {
 public:
  /// Throws as InputFile (base/files.h) does.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// An IDX file of bytes, as MNIST's are: a header of big-endian numbers of four bytes and then one
/// byte per value:
///
///   0x0800 + dimensions | size of each dimension … | values, the last dimension fastest
class IdxFile {
 public:
  /// Throws Error(corrupt) naming the file, what was expected and what was found, and as MappedFile
  /// does.
  IdxFile(const std::filesystem::path& path, int dimensions);

  const std::vector<std::int64_t>& shape() const { return shape_; }
  /// As many as the shape says; valid while this lives.
  std::span<const std::byte> values() const { return values_; }

 private:
  MappedFile file_;
  std::vector<std::int64_t> shape_;
  std::span<const std::byte> values_;
};

}  // namespace cohort::formats
