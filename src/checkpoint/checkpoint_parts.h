#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/new_folder.h"

namespace cohort::checkpoint {

/// A checkpoint that several tasks write together, each its own files, and one of them commits.
///
/// All meet in a folder beside the checkpoint to be, whose name they know without asking:
/// `.part-all-<generation>-<token>-<number>`. Whoever comes first makes it. A task writes its files
/// there, syncs them, and then says so in a *report*, which is a manifest of these files alone; a
/// task that cannot says that instead. The committer (CheckpointFolder::write) writes its own
/// files, waits for all reports, makes one manifest of everything and gives the folder its name.
/// Until then the checkpoints before are as they were, and where one is missing, the folder is
/// removed.
///
///   task 1 ── files ── sync ── report-1 ─┐
///   task 2 ── files ── sync ── report-2 ─┤   all in .part-all-…
///   committer ── files ──────────────────┴▶ one manifest ── sync ── rename
///
/// An attempt's name is the same for all tasks and is used once, so that what a dead or late task
/// has left is never taken for a part of another checkpoint. What earlier attempts have left is
/// removed; folders of later ones are not, be they of the same group or of a later one, since a
/// quick task may be there before the committer has even begun with the one before.
struct JointCheckpoint {
  std::filesystem::path folder;  ///< Of all checkpoints of the run.
  JointAttempt attempt;
};

/// Writes a task's files and reports them once they are on the disk. Throws Error naming the file;
/// the committer is then told of it, as far as the disk allows.
void write_part(const JointCheckpoint& joint, int task,
                std::span<const CheckpointContent::File> files);

/// Tells the committer that this task will not write its part, in a sentence.
void refuse_part(const JointCheckpoint& joint, int task, const std::string& why);

/// Whom a committer waits for.
struct OtherParts {
  JointAttempt attempt = {};
  std::vector<int> tasks = {};
  /// Once it returns true, whoever has not reported will not.
  std::function<bool()> give_up = {};
  Duration patience = std::chrono::minutes(10);
};

/// The committer's wait: the files that the others have reported, in the order of the tasks; their
/// reports are removed. `is_gone` says that the folder is not the committer's any more. Throws
/// Error naming the task that has not written its part, and why.
std::vector<Manifest::File> take_reports(const std::filesystem::path& folder,
                                         const OtherParts& others,
                                         const std::function<bool()>& is_gone);

}  // namespace cohort::checkpoint
