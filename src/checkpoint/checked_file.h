#pragma once

#include <filesystem>
#include <string_view>

#include "base/unique_fd.h"
#include "checkpoint/manifest.h"

namespace cohort {

/// A new file whose size and checksum are taken on the way, in the same pass over the bytes.
class CheckedFile {
 public:
  /// Throws Error where it exists or cannot be made.
  CheckedFile(const std::filesystem::path& folder, const std::string& name);

  void write(std::string_view bytes);
  const Manifest::File& written() const { return written_; }

  /// Whether somebody has removed it.
  bool is_gone() const;

  /// Returns when the bytes are on the disk.
  void sync();

 private:
  const std::filesystem::path path_;
  UniqueFd fd_;
  Manifest::File written_;
};

}  // namespace cohort
