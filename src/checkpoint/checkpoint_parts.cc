#include "checkpoint/checkpoint_parts.h"

#include <memory>
#include <optional>
#include <thread>

#include "base/fail.h"
#include "base/failpoint.h"
#include "base/files.h"
#include "checkpoint/new_folder.h"

namespace cohort::checkpoint {
namespace {

namespace fs = std::filesystem;

/// How often the committer looks for reports: the others are writing to the same disk.
constexpr auto kLookForReports = std::chrono::milliseconds(10);

constexpr std::uint64_t kMostReportBytes = 1 << 20;

fs::path report_of(const fs::path& folder, int task) {
  return folder / fmt::format("report-{}", task);
}

fs::path refusal_of(const fs::path& folder, int task) {
  return folder / fmt::format("refusal-{}", task);
}

fs::path meeting_folder(const JointCheckpoint& joint) {
  create_folder(joint.folder);
  return make_joint_folder(joint.folder, joint.attempt);
}

std::optional<std::string> text_in(const fs::path& path) {
  try {
    return read_file(path, Links::refuse, kMostReportBytes);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::not_found) return std::nullopt;
    throw;
  }
}

Manifest write_and_sync(const fs::path& folder, std::span<const CheckpointContent::File> files) {
  Manifest report;  // Of no step: only the committer knows which it is.
  std::vector<std::unique_ptr<CheckedFile>> written;
  for (const CheckpointContent::File& file : files) {
    failpoint("checkpoint.part");
    written.push_back(write_checked(folder, file));
  }
  for (const auto& file : written) {
    file->sync();
    report.files.push_back(file->written());
  }
  return report;
}

/// Nothing while the task has said nothing. Throws where it has refused.
std::optional<Manifest> report_in(const fs::path& folder, int task) {
  if (const auto why = text_in(refusal_of(folder, task))) {
    fail(ErrorCode::io, "worker {} could not write its part: {}", task, excerpt(*why));
  }
  const fs::path path = report_of(folder, task);
  const auto text = text_in(path);
  if (!text) return std::nullopt;
  return parse_manifest(*text, path);
}

}  // namespace

// Files are the whole conversation: tasks may be on different hosts that share the folder and
// nothing else. A part is on the disk before its report says so, and a report comes into being as a
// whole; so whoever reads one may rely on it. A task that cannot write its part says why (a
// refusal), as long as there is a folder to say it in.
void write_part(const JointCheckpoint& joint, int task,
                std::span<const CheckpointContent::File> files) {
  const fs::path folder = meeting_folder(joint);
  try {
    const Manifest report = write_and_sync(folder, files);
    failpoint("checkpoint.report");
    write_file_atomically(report_of(folder, task), to_text(report), Sync::no);
  } catch (const std::exception& error) {
    try {
      write_file_atomically(refusal_of(folder, task), error.what(), Sync::no);
    } catch (const Error&) {
      // The committer has removed the folder, or there is no room even for this: it will notice.
    }
    throw;
  }
}

void refuse_part(const JointCheckpoint& joint, int task, const std::string& why) {
  write_file_atomically(refusal_of(meeting_folder(joint), task), why, Sync::no);
}

// One task after the other, in any order of their coming: all of them are needed. The reports go
// when all are there, since they are not files of the checkpoint.
std::vector<Manifest::File> take_reports(const fs::path& folder, const OtherParts& others,
                                         const std::function<bool()>& is_gone) {
  const Deadline deadline = Deadline::in(others.patience);
  std::vector<Manifest::File> files;
  for (const int task : others.tasks) {
    for (;;) {
      // Asked before looking: a task that is lost may have reported first.
      const bool last_look = deadline.passed() || (others.give_up && others.give_up());
      if (const auto report = report_in(folder, task)) {
        files.insert(files.end(), report->files.begin(), report->files.end());
        break;
      }
      if (is_gone()) {
        fail(ErrorCode::cancelled, "{} was removed while it was being written", folder.string());
      }
      if (last_look) {
        fail(ErrorCode::peer_lost, "worker {} has not written its part", task);
      }
      std::this_thread::sleep_for(kLookForReports);
    }
  }
  for (const int task : others.tasks) {
    std::error_code failed;
    fs::remove(report_of(folder, task), failed);
    if (failed) fail_errno("cannot remove " + report_of(folder, task).string(), failed.value());
  }
  return files;
}

}  // namespace cohort::checkpoint
