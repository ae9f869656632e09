#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "checkpoint/safetensors.h"

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

/// What the file with a checkpoint's text is called.
inline constexpr const char* kStateName = "state.json";

/// Where nothing is known of the model that a checkpoint is for.
inline constexpr std::uint64_t kAnySize = std::numeric_limits<std::uint64_t>::max();

/// A checkpoint to write; names, shapes and values are the caller's, are not copied, and must stay
/// unchanged until it is written.
struct CheckpointContent {
  struct File {
    std::string name;  ///< Such as "model.safetensors".
    std::vector<TensorView> tensors = {};
    SafetensorsMetadata metadata = {};
  };

  std::int64_t step = 0;
  std::vector<File> files = {};
  std::string state;  ///< The text of state.json.
};

/// Writes such a file into `folder`, which is on the disk after its sync(). Throws Error naming it.
std::unique_ptr<CheckedFile> write_checked(const std::filesystem::path& folder,
                                           const CheckpointContent::File& file);

/// A checkpoint on the disk, every byte of which was found to be as it was written. Holds the text
/// of state.json; tensors are read when they are asked for, from the files that were checked when
/// this was made.
class Checkpoint {
 public:
  /// Reads and checks all of it, if it has no more than `most` bytes. Throws Error naming the file
  /// that is broken, and how.
  explicit Checkpoint(std::filesystem::path folder, std::uint64_t most = kAnySize);

  /// The same of state.json and the wanted files alone: it is as if it had no others.
  Checkpoint(std::filesystem::path folder, const WantedFiles& wanted);

  /// Names of the files that it has, without the manifest's own.
  std::vector<std::string> files() const;

  const std::filesystem::path& path() const { return path_; }
  std::int64_t step() const { return manifest_.step; }

  bool has(const std::string& file) const;

  /// Names, shapes and values of the tensors of one file, if they are what is expected. Throws
  /// Error(not_found).
  SafetensorsFile tensors(const std::string& file, SafetensorsExpectation expected = {}) const;

  /// The same for whoever wants only some of the values.
  SafetensorsSource source(const std::string& file, SafetensorsExpectation expected = {}) const;

  /// The text of state.json.
  const std::string& state() const { return state_; }

 private:
  void read_state();
  void check_has(const std::string& file) const;

  std::filesystem::path path_;
  Manifest manifest_;
  std::string state_;
};

}  // namespace cohort::checkpoint
