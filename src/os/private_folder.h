#pragma once

#include <sys/types.h>

#include <string>

#include "base/unique_fd.h"

namespace cohort::os {

/// A folder for sockets that nobody but this user can enter (mode 0700), with a name short enough
/// for the path of a unix socket. It stands in /tmp, not in the folder of the user's session, which
/// goes when the user logs out while a training goes on.
///
///   /tmp/cohort-live-x3Kq9a/             of one process and its children
///   /tmp/cohort-user-1000/<name>/        shared by processes of the user that know its name
///       store, rpc-0, …                  whatever is listened on
///
/// Who has a folder open holds a lock on it (flock on the folder itself; systemd-tmpfiles leaves
/// alone what is locked). A folder that nobody holds is a leftover of processes that were killed,
/// and removed by the next one that makes a folder beside it.
///
/// The process that has made or opened the object lets go of the folder in the destructor, whatever
/// children it has; a child that has it by fork() does not. Whoever lets go last removes it, with
/// everything in it. Of a process that was killed the folder is held on by the children that it has
/// forked, until they end: they may still meet there. A program that it has started (exec) does not
/// hold it.
class PrivateFolder {
 public:
  /// A new one, of a name that nobody can foresee. Throws Error(io).
  PrivateFolder();
  /// The one of this name among the user's own, which all who ask for it have together. Throws as
  /// user_folder().
  explicit PrivateFolder(const std::string& name);
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;
  ~PrivateFolder();

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  UniqueFd lock_;
  pid_t maker_;
};

/// Makes the folder `path` with mode 0700 where it is not there yet. Throws Error(io) where something
/// of that name belongs to somebody else, can be entered by others, or is a link.
void make_private_folder(const std::string& path);

/// The user's own folder on this host, the same for every process of the user. Its name can be
/// foreseen, so another user may have taken it: then it stands in the folder of the user's session.
/// Throws as make_private_folder() where there is none, either.
std::string user_folder();
/// The same where names that all can take stand in `base`, and the session's folder is `session`.
std::string user_folder_in(const std::string& base, const std::string& session);

}  // namespace cohort::os
