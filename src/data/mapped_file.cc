#include "data/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/fail.h"
#include "base/unique_fd.h"

namespace cohort {

MappedFile::MappedFile(const std::filesystem::path& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd && errno == ENOENT) fail(ErrorCode::not_found, "there is no file {}", path.string());
  if (!fd) fail_errno("cannot open " + path.string());
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) fail_errno("cannot read " + path.string());
  if (!S_ISREG(status.st_mode)) fail(ErrorCode::io, "{} is not a file", path.string());
  size_ = static_cast<std::size_t>(status.st_size);
  if (size_ == 0) return;  // Nothing cannot be mapped.
  void* data = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED) fail_errno("cannot map " + path.string());
  data_ = static_cast<const std::byte*>(data);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace cohort
