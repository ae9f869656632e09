#include "checkpoint/checkpoint.h"

#include <algorithm>

#include "base/fail.h"
#include "base/files.h"

namespace cohort {
namespace {

/// Room for more than a million pieces of work that wait to be done again.
constexpr std::uint64_t kMostStateBytes = 64 << 20;

}  // namespace

Checkpoint::Checkpoint(std::filesystem::path folder, std::uint64_t most)
    : path_(std::move(folder)), manifest_(verify_files(path_, most)) {
  if (!has(kStateName)) {
    fail(ErrorCode::corrupt, "{} names no {}", (path_ / kManifestName).string(), kStateName);
  }
  state_ = read_file(path_ / kStateName, Links::refuse, kMostStateBytes);
}

bool Checkpoint::has(const std::string& file) const {
  return std::ranges::any_of(manifest_.files,
                             [&](const Manifest::File& one) { return one.name == file; });
}

SafetensorsFile Checkpoint::tensors(const std::string& file,
                                    SafetensorsExpectation expected) const {
  if (!has(file)) {
    fail(ErrorCode::not_found, "the checkpoint {} has no file {}", path_.string(), file);
  }
  expected.links = Links::refuse;
  return read_safetensors(path_ / file, expected);
}

}  // namespace cohort
