#pragma once

#include <sys/types.h>

#include <string>

#include "base/unique_fd.h"

namespace cohort::os {

/// A folder for sockets that nobody but this user can enter (mode 0700), with a name short enough
/// for the path of a unix socket. Where a folder of the user's session is there (/run/user/<uid>)
/// it stands in that, otherwise in /tmp.
///
///   /run/user/1000/cohort-run-x3Kq9a/ of one run; its maker removes it
///       lock                          held by the maker: folders without a holder are leftovers
///       store, rpc-0, …               whatever the run listens on
///
/// The process that made it removes it, with everything in it, in the destructor; a child that has
/// it by fork() does not. What a killed maker leaves behind is removed by the next one that makes a
/// folder for the same user.
class PrivateFolder {
 public:
  /// A new one. Throws Error(io).
  PrivateFolder();
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

/// The user's own folder on this host, the same for every process of the user, made as above.
std::string user_folder();

}  // namespace cohort::os
