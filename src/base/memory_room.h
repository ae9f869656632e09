#pragma once

#include <cstdint>
#include <string>

namespace cohort {

/// Asked before a large allocation whose size others determine. Linux promises more memory than it
/// has and kills a process when the promise is called in, so what clearly cannot fit must not be
/// tried. The answer is a guess all the same: other processes take and give memory meanwhile.

/// Bytes that this process can still be given, the least of
///   - what the kernel has free or can reclaim, and free swap;
///   - the whole limit of its control group (version 2; what the group uses is not taken off);
///   - what its limit on address space leaves.
/// A limit that cannot be read counts as none.
std::uint64_t memory_room();

/// Throws Error(no_space) where memory_room() is less than `bytes`; `what` is the subject of the
/// sentence: "the training samples".
void check_memory_room(const std::string& what, std::uint64_t bytes);

}  // namespace cohort
