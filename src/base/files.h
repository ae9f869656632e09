#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace cohort {

/// The one door to files. What is read may have been put there by anybody: only regular files are
/// read, their size is known before, and opening never waits. What is written to be kept appears
/// under its name all at once (AtomicFile), so that a reader, or the next run after a crash, never
/// finds half a file. All errors name the path.

/// Whether a file whose name is a symbolic link may be read. Paths that a user gives may be links;
/// what stands in a folder of ours (a checkpoint, a run) was never made as one.
enum class Links { follow, refuse };

/// A regular file, open to be read, whose size is known. A FIFO, a device or a folder is refused,
/// and opening one never waits.
class InputFile {
 public:
  /// Throws Error naming the path: not_found, invalid for what is no regular file, io.
  explicit InputFile(std::filesystem::path path, Links links = Links::follow);

  const std::filesystem::path& path() const { return path_; }
  int fd() const { return fd_.get(); }
  /// In bytes, when it was opened; a file may grow or shrink while it is read.
  std::uint64_t size() const { return size_; }

  /// Fills `into` from where the last call ended, and returns how many bytes it got: fewer only at
  /// the end of the file. Throws Error(io).
  std::size_t read(std::span<std::byte> into);

 private:
  std::filesystem::path path_;
  UniqueFd fd_;
  std::uint64_t size_ = 0;
};

/// The whole file, as it was when it was opened. Throws as InputFile does, Error(invalid) where it
/// has more than `most` bytes, which are then not read, and Error(no_space) where memory has not.
std::string read_file(const std::filesystem::path& path, Links links = Links::follow,
                      std::uint64_t most = std::numeric_limits<std::uint64_t>::max());

/// A file of the kernel's, under /proc or /sys, whose size is not known before it is read. Throws
/// as InputFile does.
std::string read_kernel_file(const std::filesystem::path& path);

/// A file of a run folder to write to, made where it is missing; never through a link, and never
/// one that is no regular file. Throws Error(invalid) or Error(io) naming the path.
enum class Existing { append, empty };
UniqueFd open_to_write(const std::filesystem::path& path, Existing existing);

/// Whether to return only when what was written is on the disk. What only tells others how things
/// stand must not wait for that: a disk may be busy for minutes.
enum class Sync { yes, no };

/// Either the old content or all of the new is under `path`, also on a full disk and when this
/// process dies; with Sync::yes also when the machine does.
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes,
                           Sync sync = Sync::yes);

/// Writes all of `bytes` to an open file. Throws Error(io) or Error(no_space) naming `path`.
void write_all(int fd, std::string_view bytes, const std::filesystem::path& path);

/// Returns when names made, changed or removed in the folder are on the disk. Throws Error(io).
void sync_folder(const std::filesystem::path& folder);

/// Creates the folder and those above it where they are missing. Throws Error naming it.
void create_folder(const std::filesystem::path& folder);

/// The same of a folder that is for its owner alone: it is made with mode 0700, and one that is
/// there gets it. Throws Error(invalid) where it belongs to another user, and changes nothing then.
void create_private_folder(const std::filesystem::path& folder);

/// Throws Error(invalid) where `folder` is no folder or belongs to another user, whoever that is:
/// what stands in it could be changed at any time. Throws Error(not_found) where there is none. A
/// link to a folder is looked at, too: it must be one's own or root's.
void check_own_folder(const std::filesystem::path& folder);

/// What the names of files and folders begin with that are not what they shall become, or not any
/// more; a writer that died may have left some.
inline constexpr std::string_view kLeftoverPrefix = ".part-";

/// A file written in pieces that appears under `path` all at once, by commit(). Without it (an
/// error, an early return) nothing is left and what was under `path` stays; where the process dies
/// before it, a file that begins with kLeftoverPrefix is left, for whoever owns the folder to
/// remove. Until commit() it has a name beside `path` that is its own: nobody else can have made or
/// guessed it, so that in a folder where others may write nothing of theirs is written through.
///
///   write …  ->  .part-<random>  ->  fsync  ->  rename to path  ->  fsync of the folder
///                                    (Sync::yes)                    (Sync::yes)
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view bytes) { write_all(fd_.get(), bytes, path_); }
  /// The last call. With Sync::yes it returns when file and name are on the disk.
  void commit(Sync sync = Sync::yes);

 private:
  const std::filesystem::path path_;
  std::filesystem::path temporary_;
  UniqueFd fd_;  // None after commit(): then the temporary name is gone.
};

/// A folder of its own under the system's temporary folder, removed with its owner.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace cohort
