#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace cohort {

/// A whole file as read-only memory.
class MappedFile {
 public:
  /// Throws Error(not_found) or Error(io) naming the path.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace cohort
