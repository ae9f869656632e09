#pragma once

#include <cstdint>
#include <string>

namespace cohort {

/// Bytes that this process can still be given: by the kernel (free and reclaimable memory, and
/// swap), by its control group and by its own limits. The kernel would rather kill a process than
/// refuse memory it has not, so what clearly cannot fit must not be tried.
std::uint64_t memory_room();

/// Throws Error(no_space) where memory_room() is less than `bytes`; `what` is the subject of the
/// sentence: "the training samples".
void check_memory_room(const std::string& what, std::uint64_t bytes);

}  // namespace cohort
