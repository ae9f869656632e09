#include "checkpoint/checkpoint_folder.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <utility>

#include "base/fail.h"
#include "base/failpoint.h"
#include "base/files.h"
#include "base/log.h"
#include "checkpoint/new_folder.h"

namespace cohort::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStepPrefix = "step-";
constexpr const char* kLatestName = "LATEST";

/// Nothing for a name that is not a checkpoint's.
std::optional<std::int64_t> step_of(const fs::path& path) {
  const std::string name = path.filename().string();
  if (!name.starts_with(kStepPrefix)) return std::nullopt;
  std::int64_t step = 0;
  const char* const end = name.data() + name.size();
  const auto [stopped, wrong] = std::from_chars(name.data() + kStepPrefix.size(), end, step);
  const bool is_number = wrong == std::errc() && stopped == end && step >= 0;
  if (!is_number || name != checkpoint_name(step)) return std::nullopt;
  return step;
}

/// What is in a folder; nothing where there is none.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::error_code failed;
  std::vector<fs::path> entries;
  fs::directory_iterator each(folder, failed);
  if (failed == std::errc::no_such_file_or_directory) return entries;
  for (; !failed && each != fs::directory_iterator(); each.increment(failed)) {
    entries.push_back(each->path());
  }
  if (failed) fail_errno("cannot read folder " + folder.string(), failed.value());
  return entries;
}

/// Points 2 and 3 of the recipe. Nothing is synced before all is written: the first sync then
/// brings most of the others' bytes and names along, and the disk's journal is not ended once for
/// every file.
void write_files(const fs::path& folder, const CheckpointContent& content,
                 const OtherParts& others) {
  Manifest manifest{.step = content.step};
  std::vector<std::unique_ptr<CheckedFile>> files;
  const auto write_text = [&](const std::string& name, const std::string& text) {
    files.push_back(std::make_unique<CheckedFile>(folder, name));
    files.back()->write(text);
  };
  for (const CheckpointContent::File& file : content.files) {
    failpoint("checkpoint.file");
    files.push_back(write_checked(folder, file));
  }
  failpoint("checkpoint.state");
  write_text(kStateName, content.state);
  for (const auto& file : files) manifest.files.push_back(file->written());
  const CheckedFile& state = *files.back();
  if (!others.tasks.empty()) failpoint("checkpoint.reports");
  const auto parts = take_reports(folder, others, [&state] { return state.is_gone(); });
  manifest.files.insert(manifest.files.end(), parts.begin(), parts.end());
  failpoint("checkpoint.manifest");
  write_text(kManifestName, to_text(manifest));
  for (const auto& file : files) file->sync();
}

}  // namespace

std::string checkpoint_name(std::int64_t step) {
  return fmt::format("{}{:010}", kStepPrefix, step);
}

CheckpointFolder::CheckpointFolder(fs::path path, std::int64_t keep)
    : path_(std::move(path)), keep_(keep) {
  if (keep_ < 2) {
    fail(ErrorCode::invalid, "{} checkpoint{} to keep are too few; keep at least 2", keep_,
         keep_ == 1 ? "" : "s");
  }
}

fs::path CheckpointFolder::write(const CheckpointContent& content, const OtherParts& others) {
  const fs::path final = path_ / checkpoint_name(content.step);
  failpoint("checkpoint.begin");
  create_folder(path_);
  remove_leftovers(others.attempt);
  {
    NewFolder folder(final, others.attempt);
    write_files(folder.path(), content, others);
    failpoint("checkpoint.sync-folder");
    sync_folder(folder.path());
    failpoint("checkpoint.rename");
    folder.place();
    failpoint("checkpoint.sync-parent");
    sync_folder(path_);
    failpoint("checkpoint.verify");
    verify_files(final);
    failpoint("checkpoint.latest");
    write_file_atomically(path_ / kLatestName, final.filename().string() + "\n");
    folder.keep();
  }
  try {
    prune(content.step);
  } catch (const Error& error) {
    log_warn("the checkpoint {} is saved, but an old one could not be removed: {}", final.string(),
             error.what());
  }
  return final;
}

void CheckpointFolder::remove_leftovers(const JointAttempt& before) const {
  for (const fs::path& entry : entries_of(path_)) {
    const std::string name = entry.filename().string();
    if (!name.starts_with(kLeftoverPrefix) || is_joint_since(name, before)) continue;
    std::error_code failed;
    fs::remove_all(entry, failed);
    // Somebody may still be writing into what was given up; the next one removes it.
    if (failed) log_warn("cannot remove {}: {}", entry.string(), failed.message());
  }
}

void CheckpointFolder::prune(std::int64_t newest_step) const {
  failpoint("checkpoint.prune");
  std::int64_t kept = 0;
  for (const fs::path& checkpoint : all()) {
    const bool left_behind = step_of(checkpoint) > newest_step;
    if (left_behind || kept == keep_) {
      remove_folder(checkpoint);
    } else {
      ++kept;
    }
  }
}

std::vector<fs::path> CheckpointFolder::all() const {
  std::vector<fs::path> checkpoints = entries_of(path_);
  std::erase_if(checkpoints, [](const fs::path& entry) { return !step_of(entry); });
  std::ranges::sort(checkpoints, std::ranges::greater(), step_of);
  return checkpoints;
}

CheckpointFolder::Newest CheckpointFolder::newest(std::uint64_t most_bytes) const {
  Newest newest;
  for (const fs::path& path : all()) {
    try {
      newest.checkpoint.emplace(path, most_bytes);
      return newest;
    } catch (const Error& error) {
      newest.notes.push_back(fmt::format("the checkpoint {} is broken and was passed over: {}",
                                         path.string(), error.what()));
    }
  }
  return newest;
}

}  // namespace cohort::checkpoint
