#include "data/sources/mapped_file.h"

#include <sys/mman.h>

#include "base/fail.h"
#include "base/files.h"

namespace cohort {

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

}  // namespace cohort
