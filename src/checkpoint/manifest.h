#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace cohort {

/// What must be in a checkpoint for it to be whole; docs/checkpoints.md shows one.
struct Manifest {
  struct File {
    std::string name;
    std::uint64_t size = 0;
    std::uint32_t crc32c = 0;

    bool operator==(const File&) const = default;
  };

  std::int64_t step = 0;
  std::vector<File> files = {};

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

/// Reads the manifest of a checkpoint and then all of every wanted file it names, which are those
/// returned. Throws Error naming the
/// first file that is not as it was written; also, before reading them, where they have more than
/// `most` bytes together.
Manifest verify_files(const std::filesystem::path& folder,
                      std::uint64_t most = std::numeric_limits<std::uint64_t>::max(),
                      const WantedFiles& wanted = {});

}  // namespace cohort
