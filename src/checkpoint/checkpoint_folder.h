#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/checkpoint_parts.h"

namespace cohort::checkpoint {

/// How a checkpoint is written, so that whatever happens, one that is whole can be found.
///
///   checkpoints/
///     step-0000001000/      model.safetensors, optimizer.safetensors, …, state.json: the caller's;
///     step-0000001234/      manifest.json: sizes and checksums of all of them
///     LATEST                "step-0000001234"
///     .part-…               being written, or being removed, or left by a dead writer
///
/// The recipe, and the failpoint (base/failpoint.h) before each point; checkpoint_faults_test.cc
/// fails and dies at all of them:
///
///   1  what dead writers left is removed, a folder .part-… is made       checkpoint.begin
///   2  every file is written, its checksum taken on the way,             checkpoint.file, .state,
///      manifest.json last                                                .manifest; after every
///                                                                        piece .write
///      where others have parts, which each of them writes by 2 and 3     checkpoint.part, .report
///      and reports, their reports are waited for before the manifest     checkpoint.reports
///   3  all of them are synced                                            each: checkpoint.sync
///   4  the folder is synced                                              checkpoint.sync-folder
///   5  it gets its name, exchanged with one of the same step             checkpoint.rename
///   6  the folder above is synced                                        checkpoint.sync-parent
///   7  everything is read back and compared with the manifest            checkpoint.verify
///   8  LATEST is replaced                                                checkpoint.latest
///   9  old ones are renamed to .part-…, then removed                     checkpoint.prune, .remove
///
/// A failure up to 8 takes the new one away again and is an Error; after it the new one is saved,
/// and the failure is a warning. Whoever dies up to 5 leaves a .part-… that nobody reads and the
/// next writer removes; after it, a checkpoint that is whole: its files were on the disk before it
/// had its name. A machine that loses power is such a death; that is what the syncs are for.
///
/// A reader takes the latest step whose files all are as their manifest says. It needs neither
/// LATEST, which is for people and scripts, nor a lock.
///
/// checkpoint.h has the checksums, new_folder.h the names, checkpoint_parts.h the parts of others,
/// background_writer.h the thread on which it usually happens.

/// What the folder of a checkpoint is called: step-0000001234.
std::string checkpoint_name(std::int64_t step);

/// The checkpoints of a run. Whatever happens while one is written, those before it stay whole.
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
  /// then everything is as before.
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
  std::int64_t keep_;  // How many to keep, at least 2.
};

}  // namespace cohort::checkpoint
