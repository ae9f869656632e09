#include "checkpoint/checkpoint.h"

#include <algorithm>

#include "base/fail.h"
#include "base/files.h"

namespace cohort::checkpoint {
namespace {

/// Room for more than a million pieces of work that wait to be done again.
constexpr std::uint64_t kMostStateBytes = 64 << 20;

}  // namespace

// Straight from the caller's memory to the file, with the checksum on the way: the values are read
// once, and not copied.
std::unique_ptr<CheckedFile> write_checked(const std::filesystem::path& folder,
                                           const CheckpointContent::File& file) {
  auto out = std::make_unique<CheckedFile>(folder, file.name);
  write_safetensors([&](std::string_view bytes) { out->write(bytes); }, folder / file.name,
                    file.tensors, file.metadata);
  return out;
}

Checkpoint::Checkpoint(std::filesystem::path folder, std::uint64_t most)
    : path_(std::move(folder)), manifest_(verify_files(path_, most)) {
  read_state();
}

Checkpoint::Checkpoint(std::filesystem::path folder, const WantedFiles& wanted)
    : path_(std::move(folder)),
      manifest_(verify_files(path_, kAnySize, [&](const std::string& name) {
        return name == kStateName || wanted(name);
      })) {
  read_state();
}

void Checkpoint::read_state() {
  if (!has(kStateName)) {
    fail(ErrorCode::corrupt, "{} names no {}", (path_ / kManifestName).string(), kStateName);
  }
  state_ = read_file(path_ / kStateName, Links::refuse, kMostStateBytes);
}

bool Checkpoint::has(const std::string& file) const {
  return std::ranges::any_of(manifest_.files,
                             [&](const Manifest::File& one) { return one.name == file; });
}

std::vector<std::string> Checkpoint::files() const {
  std::vector<std::string> names;
  for (const Manifest::File& file : manifest_.files) names.push_back(file.name);
  return names;
}

void Checkpoint::check_has(const std::string& file) const {
  if (has(file)) return;
  fail(ErrorCode::not_found, "the checkpoint {} has no file {}", path_.string(), file);
}

SafetensorsSource Checkpoint::source(const std::string& file,
                                     SafetensorsExpectation expected) const {
  check_has(file);
  expected.links = Links::refuse;
  return SafetensorsSource(path_ / file, expected);
}

SafetensorsFile Checkpoint::tensors(const std::string& file,
                                    SafetensorsExpectation expected) const {
  check_has(file);
  expected.links = Links::refuse;
  return read_safetensors(path_ / file, expected);
}

}  // namespace cohort::checkpoint
