#pragma once

#include <cohort/error.h>
#include <fmt/format.h>

#include <utility>

namespace cohort {

/// Runs `decode`; what is wrong with the message is said to be about the rank that sent it.
template <class Decode>
void decode_from(int rank, Decode&& decode) {
  try {
    std::forward<Decode>(decode)();
  } catch (const Error& error) {
    throw error.with_context(fmt::format("gradients of rank {}", rank)).about_rank(rank);
  }
}

}  // namespace cohort
