#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/deadline.h"

namespace cohort::os {

/// Programs: another one beside this process, or this one anew in its place. Parts of this program
/// that shall run in processes of their own are os/child_processes.h.

/// Runs a program, found on PATH, in `folder`, without a shell, and waits for it. It reads nothing
/// (/dev/null) and is in a process group of its own, so that all it starts can be ended with it.
/// Throws Error: unsupported where there is no such program, timeout where it does not end in time
/// (it is killed, with what it started), io where it fails; the message has the command and the
/// last line that it printed.
void run_program(const std::vector<std::string>& command, const std::filesystem::path& folder,
                 Deadline deadline);

/// Begins this program anew in this process, with these words and this environment ("NAME=VALUE"
/// each): file, process id, folder and the descriptors that are not marked close-on-exec stay, all
/// else of the process is gone. Returns only where the system refuses; then nothing has changed,
/// and errno says why.
void exec_this_program(std::vector<std::string> words, std::vector<std::string> environment);

/// Words as exec() and posix_spawn() take them: a pointer to each, and a null pointer after the
/// last. It owns the words. Make it before fork(): a child of a process with threads must not
/// allocate.
class ExecWords {
 public:
  explicit ExecWords(std::vector<std::string> words);
  ExecWords(const ExecWords&) = delete;
  ExecWords& operator=(const ExecWords&) = delete;

  char* const* get() const { return pointers_.data(); }

 private:
  std::vector<std::string> words_;
  std::vector<char*> pointers_;  // Into words_.
};

}  // namespace cohort::os
