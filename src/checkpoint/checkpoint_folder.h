#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/checkpoint_parts.h"

namespace cohort {

/// What the folder of a checkpoint is called.
std::string checkpoint_name(std::int64_t step);

/// The checkpoints of a run: one folder each, step-0000001234, and LATEST, a file that names the
/// last one written. Whatever happens while one is written, those before it stay whole.
///
/// One writer at a time: what a writer finds half-written it takes for a dead one's, and removes.
/// Readers may come at any time.
class CheckpointFolder {
 public:
  /// Nothing is touched before write(). Throws Error(invalid) where `keep` is less than 2: while
  /// there is only one, a disk that spoils it loses everything.
  explicit CheckpointFolder(std::filesystem::path path, std::int64_t keep = 2);

  const std::filesystem::path& path() const { return path_; }

  /// Writes a checkpoint and returns its path once it is on the disk and was read back without a
  /// fault; then removes old ones. Those of later steps, which a training that went back has left
  /// behind, go too; one of the same step is replaced. Throws Error naming file and reason, and
  /// then everything is as before. The recipe is in README.md, point by point.
  ///
  /// With `others`, their files belong to it as `content`'s do: see checkpoint_parts.h. Where one
  /// of them does not write its part, that is such an Error.
  std::filesystem::path write(const CheckpointContent& content, const OtherParts& others = {});

  /// Removes what dead writers have left. Only where nobody is writing; what cannot be removed is a
  /// warning.
  void remove_leftovers() const { remove_leftovers(JointAttempt()); }

  struct Newest {
    std::optional<Checkpoint> checkpoint = {};  ///< Nothing where none is whole.
    std::vector<std::string> notes = {};        ///< A sentence per broken one that was passed over.
  };

  /// The one of the latest step that is whole and has at most so many bytes. LATEST is not trusted
  /// for this: it may be torn, or older than a checkpoint whose writer died between the two.
  Newest newest(std::uint64_t most_bytes = kAnySize) const;

  /// The folders of all checkpoints, whole or not, latest step first.
  std::vector<std::filesystem::path> all() const;

 private:
  void remove_leftovers(const JointAttempt& before) const;
  void prune(std::int64_t newest_step) const;

  std::filesystem::path path_;
  std::int64_t keep_;
};

}  // namespace cohort
