#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/manifest.h"
#include "checkpoint/safetensors.h"

namespace cohort::checkpoint {

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
