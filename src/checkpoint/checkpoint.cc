#include "checkpoint/checkpoint.h"

#include <algorithm>

#include "base/fail.h"
#include "base/files.h"

namespace cohort {

Checkpoint::Checkpoint(std::filesystem::path folder)
    : path_(std::move(folder)), manifest_(verify_files(path_)) {
  if (!has(kStateName)) {
    fail(ErrorCode::corrupt, "{} names no {}", (path_ / kManifestName).string(), kStateName);
  }
  state_ = read_file(path_ / kStateName);
}

bool Checkpoint::has(const std::string& file) const {
  return std::ranges::any_of(manifest_.files,
                             [&](const Manifest::File& one) { return one.name == file; });
}

SafetensorsFile Checkpoint::tensors(const std::string& file) const {
  if (!has(file)) {
    fail(ErrorCode::not_found, "the checkpoint {} has no file {}", path_.string(), file);
  }
  return read_safetensors(path_ / file);
}

}  // namespace cohort
