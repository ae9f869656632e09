#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

namespace cohort {

/// Memory that processes share without a name in any folder (memfd, shared anonymous memory), by
/// what the kernel calls it: device and inode. The value is its name for people.
using HeldMemory = std::map<std::string, std::string>;

/// What a process has open or mapped of it. A process that has ended, or is not ours to look at,
/// holds nothing.
HeldMemory memory_of(pid_t pid);

/// A line for every process of this machine that still holds some of `memory`.
std::vector<std::string> holders_of(const HeldMemory& memory);

}  // namespace cohort
