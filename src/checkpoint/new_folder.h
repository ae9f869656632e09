#pragma once

#include <filesystem>

namespace cohort {

/// A folder that is filled under another name (kLeftoverPrefix) and appears all at once. Unless
/// keep() is called, nothing is left of it in the end, and what had its name before has it again.
class NewFolder {
 public:
  explicit NewFolder(std::filesystem::path final);
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
  bool replaces_ = false;
  bool placed_ = false;
  bool kept_ = false;
};

/// Removes a folder so that it never stands there under its own name with a part of its files.
void remove_folder(const std::filesystem::path& folder);

}  // namespace cohort
