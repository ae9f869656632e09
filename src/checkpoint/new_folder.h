#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>

namespace cohort::checkpoint {

/// One attempt to fill a folder, by a task alone or by several together. Tasks form groups, one
/// after the other; the attempts of a group are numbered.
struct JointAttempt {
  static constexpr std::int64_t kNobodyLater = std::numeric_limits<std::int64_t>::max();

  std::int64_t generation = kNobodyLater;  ///< Of the group: a later group's is larger.
  std::uint32_t token = 0;                 ///< No other group's; 0: one task fills it alone.
  std::uint32_t number = 0;

  bool is_joint() const { return token != 0; }
};

/// A folder that is filled under another name (kLeftoverPrefix) and appears all at once. Unless
/// keep() is called, nothing is left of it in the end, and what had its name before has it again.
///
///   .part-step-0000001234     filled by one task alone
///   .part-all-7-90210-3       filled by several: generation 7, token 90210, attempt 3
///        │ place()
///        ▼
///   step-0000001234           what stood here before is at .part-… until the end, then removed
///
/// Syncing is the caller's.
class NewFolder {
 public:
  /// With an `attempt`, others may fill it too, and may have made it; see checkpoint_parts.h.
  explicit NewFolder(std::filesystem::path final, const JointAttempt& attempt = {});
  ~NewFolder();
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  /// Where to put its files before place().
  const std::filesystem::path& path() const { return temporary_; }

  /// Gives it its name. A folder that has it already keeps its place under the other name until
  /// this ends: the two names are exchanged, so that there is never none.
  void place();
  void keep() { kept_ = true; }

 private:
  const std::filesystem::path final_;
  const std::filesystem::path temporary_;
  bool replaces_ = false;  // place() has found a folder of the final name.
  bool placed_ = false;
  bool kept_ = false;
};

/// Makes the folder within `parent` in which the tasks of an attempt meet, where it is not there
/// yet, and returns its path.
std::filesystem::path make_joint_folder(const std::filesystem::path& parent,
                                        const JointAttempt& attempt);

/// Whether a name is that of the folder of this joint attempt, of a later one of the same group, or
/// of one of a later group: its tasks may be there before the attempt has ended.
bool is_joint_since(const std::string& name, const JointAttempt& attempt);

/// Removes a folder so that it never stands there under its own name with a part of its files.
void remove_folder(const std::filesystem::path& folder);

}  // namespace cohort::checkpoint
