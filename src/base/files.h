#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace cohort {

/// The whole file. Throws Error(not_found) or Error(io) naming the path.
std::string read_file(const std::filesystem::path& path);

/// Either the old content or all of the new is under `path`, also after a crash or on a full disk.
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);

/// Writes all of `bytes` to an open file. Throws Error(io) or Error(no_space) naming `path`.
void write_all(int fd, std::string_view bytes, const std::filesystem::path& path);

/// Returns when names made, changed or removed in the folder are on the disk. Throws Error(io).
void sync_folder(const std::filesystem::path& folder);

/// Creates the folder and those above it where they are missing. Throws Error naming it.
void create_folder(const std::filesystem::path& folder);

/// A file written in pieces that appears under `path` all at once, by commit(). Without it (an
/// error, an early return) nothing is left and what was under `path` stays.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view bytes) { write_all(fd_.get(), bytes, temporary_); }
  /// Returns when file and name are on the disk. The last call.
  void commit();

 private:
  const std::filesystem::path path_;
  const std::filesystem::path temporary_;
  UniqueFd fd_;
};

/// A folder of its own under the system's temporary folder, removed with its owner.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace cohort
