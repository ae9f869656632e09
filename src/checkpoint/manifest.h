#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"

namespace cohort::checkpoint {

/// What must be in a checkpoint for it to be whole: names, sizes and checksums of all its files, in
/// one file more, manifest.json; docs/checkpoints.md shows one. This file has both directions:
/// CheckedFile takes size and checksum while a file is written, verify_files() compares them with
/// what is on the disk. A folder without a manifest is not a checkpoint, so it is written last.
struct Manifest {
  struct File {
    std::string name;
    std::uint64_t size = 0;
    std::uint32_t crc32c = 0;

    bool operator==(const File&) const = default;
  };

  std::int64_t step = 0;
  std::vector<File> files = {};  ///< In the order they were written in.

  bool operator==(const Manifest&) const = default;
};

/// What the manifest's own file is called.
inline constexpr const char* kManifestName = "manifest.json";

/// The text of the file, with a checksum of itself.
std::string to_text(const Manifest& manifest);

/// The other way. Throws Error(corrupt) naming `path` for any text that to_text() does not make.
Manifest parse_manifest(std::string_view text, const std::filesystem::path& path);

/// Which files of a checkpoint somebody has use for; empty: all.
using WantedFiles = std::function<bool(const std::string& name)>;

/// Reads the manifest of a checkpoint and then all of every wanted file it names, and returns it
/// without the others. Throws Error naming the first file that is not as it was written; also,
/// before reading any, where the wanted ones have more than `most` bytes together. Links are not
/// followed: a checkpoint is what is in its folder.
Manifest verify_files(const std::filesystem::path& folder,
                      std::uint64_t most = std::numeric_limits<std::uint64_t>::max(),
                      const WantedFiles& wanted = {});

/// A new file of a checkpoint. Its size and checksum are taken on the way, in the same pass over
/// the bytes: what the manifest says is what was meant to be written, not what the disk gave back.
/// It stays open until it is destroyed, so that it can be synced after all others are written.
class CheckedFile {
 public:
  /// Throws Error where it exists or cannot be made.
  CheckedFile(const std::filesystem::path& folder, const std::string& name);

  void write(std::string_view bytes);
  const Manifest::File& written() const { return written_; }

  /// Whether somebody has removed it: another writer, that takes this one for dead.
  bool is_gone() const;

  /// Returns when the bytes are on the disk.
  void sync();

 private:
  const std::filesystem::path path_;
  UniqueFd fd_;
  Manifest::File written_;
};

}  // namespace cohort::checkpoint
