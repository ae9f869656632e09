#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/fail.h"
#include "base/unique_fd.h"
#include "checkpoint/safetensors.h"

namespace cohort {
namespace {

using Json = nlohmann::json;

/// No real header is larger; a wrong length must not make us reserve the machine's memory.
constexpr std::uint64_t kLargestHeader = 100'000'000;

template <class... Args>
[[noreturn]] void corrupt(const std::string& path, fmt::format_string<Args...> what,
                          Args&&... args) {
  fail(ErrorCode::corrupt, "{} is not a sound safetensors file: {}", path,
       fmt::format(what, std::forward<Args>(args)...));
}

/// An open file that knows how much of it is left.
class Source {
 public:
  explicit Source(const std::string& path)
      : path_(path), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (!fd_ && errno == ENOENT) fail(ErrorCode::not_found, "there is no file {}", path);
    struct stat status {};
    if (!fd_ || ::fstat(fd_.get(), &status) != 0) fail_errno("cannot open " + path);
    left_ = static_cast<std::uint64_t>(status.st_size);
  }

  std::uint64_t left() const { return left_; }

  void read(void* to, std::uint64_t count) {
    auto* bytes = static_cast<char*>(to);
    left_ -= std::min(count, left_);
    while (count > 0) {
      const ssize_t got = ::read(fd_.get(), bytes, count);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail_errno("cannot read " + path_);
      if (got == 0) corrupt(path_, "it ends {} bytes too early", count);
      bytes += got;
      count -= static_cast<std::uint64_t>(got);
    }
  }

 private:
  const std::string path_;
  UniqueFd fd_;
  std::uint64_t left_ = 0;
};

Json read_header(Source& source, const std::string& path) {
  std::uint64_t length = 0;
  source.read(&length, sizeof length);
  if (length > std::min(source.left(), kLargestHeader)) {
    corrupt(path, "its header claims {} bytes, but {} follow", length, source.left());
  }
  std::string text(length, '\0');
  source.read(text.data(), length);
  Json header = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!header.is_object()) corrupt(path, "its header is not a JSON object");
  return header;
}

SafetensorsMetadata metadata_of(const Json& header, const std::string& path) {
  SafetensorsMetadata metadata;
  const auto found = header.find("__metadata__");
  if (found == header.end()) return metadata;
  if (!found->is_object()) corrupt(path, "its metadata is not a JSON object");
  for (const auto& [key, value] : found->items()) {
    if (!value.is_string()) corrupt(path, "its metadata \"{}\" is not a string", key);
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

SafetensorsDtype dtype_of(const Json& entry, const std::string& name, const std::string& path) {
  const Json dtype = entry.value("dtype", Json());
  if (dtype == "F32") return SafetensorsDtype::f32;
  if (dtype == "I64") return SafetensorsDtype::i64;
  corrupt(path, "tensor \"{}\" has dtype {}; F32 and I64 can be read", name, dtype.dump());
}

std::vector<std::uint64_t> counts_of(const Json& entry, const char* key, const std::string& name,
                                     const std::string& path) {
  const Json list = entry.value(key, Json());
  const auto is_count = [](const Json& value) { return value.is_number_unsigned(); };
  if (!list.is_array() || !std::all_of(list.begin(), list.end(), is_count)) {
    corrupt(path, "tensor \"{}\" has {} that are no list of counts", name, key);
  }
  return list.get<std::vector<std::uint64_t>>();
}

/// What the shape needs in bytes, or more than any file has where that number has no room.
std::uint64_t bytes_needed(const std::vector<std::uint64_t>& shape, SafetensorsDtype dtype) {
  constexpr std::uint64_t kTooMany = std::uint64_t{1} << 60;
  std::uint64_t bytes = dtype == SafetensorsDtype::f32 ? sizeof(float) : sizeof(std::int64_t);
  bool empty = false;
  for (const std::uint64_t extent : shape) {
    if (extent > kTooMany / bytes) return kTooMany;
    if (extent > 0) bytes *= extent;
    empty = empty || extent == 0;
  }
  return empty ? 0 : bytes;
}

StoredTensor parse_tensor(const Json& entry, const std::string& name, const std::string& path) {
  if (!entry.is_object()) corrupt(path, "tensor \"{}\" is not described by an object", name);
  const SafetensorsDtype dtype = dtype_of(entry, name, path);
  const auto shape = counts_of(entry, "shape", name, path);
  const auto place = counts_of(entry, "data_offsets", name, path);
  if (place.size() != 2 || place[0] > place[1] ||
      place[1] - place[0] != bytes_needed(shape, dtype)) {
    corrupt(path, "the data_offsets [{}] of tensor \"{}\" do not fit its shape [{}]",
            fmt::join(place, ", "), name, fmt::join(shape, ", "));
  }
  return {.name = name,
          .dtype = dtype,
          .shape = {shape.begin(), shape.end()},
          .begin = place[0],
          .end = place[1]};
}

/// The tensors must fill the buffer: each starts where the one before it ended.
void check_places(const std::vector<StoredTensor>& tensors, std::uint64_t size,
                  const std::string& path) {
  std::uint64_t reached = 0;
  for (const StoredTensor& tensor : tensors) {
    if (tensor.begin < reached) corrupt(path, "tensor \"{}\" overlaps another", tensor.name);
    if (tensor.begin > reached) corrupt(path, "there is a hole before tensor \"{}\"", tensor.name);
    if (tensor.end > size) {
      corrupt(path, "tensor \"{}\" ends at byte {} of {}", tensor.name, tensor.end, size);
    }
    reached = tensor.end;
  }
  if (reached != size) corrupt(path, "its last {} bytes belong to no tensor", size - reached);
}

std::vector<StoredTensor> tensors_of(const Json& header, std::uint64_t buffer_size,
                                     const std::string& path) {
  std::vector<StoredTensor> tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name != "__metadata__") tensors.push_back(parse_tensor(entry, name, path));
  }
  std::sort(tensors.begin(), tensors.end(), [](const StoredTensor& a, const StoredTensor& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  check_places(tensors, buffer_size, path);
  return tensors;
}

}  // namespace

SafetensorsFile read_safetensors(const std::filesystem::path& path) {
  SafetensorsFile file;
  file.path_ = path.string();
  Source source(file.path_);
  const Json header = read_header(source, file.path_);
  const std::uint64_t size = source.left();
  file.metadata_ = metadata_of(header, file.path_);
  file.tensors_ = tensors_of(header, size, file.path_);
  file.buffer_ = std::make_unique_for_overwrite<std::byte[]>(size);
  source.read(file.buffer_.get(), size);
  return file;
}

const StoredTensor& SafetensorsFile::tensor(const std::string& name) const {
  const auto found = std::find_if(tensors_.begin(), tensors_.end(),
                                  [&](const StoredTensor& stored) { return stored.name == name; });
  if (found == tensors_.end()) {
    fail(ErrorCode::not_found, "{} has no tensor \"{}\"", path_, name);
  }
  return *found;
}

const StoredTensor& SafetensorsFile::tensor_of(const std::string& name,
                                               SafetensorsDtype dtype) const {
  const StoredTensor& stored = tensor(name);
  if (stored.dtype != dtype) {
    fail(ErrorCode::invalid, "tensor \"{}\" of {} holds {}", name, path_,
         dtype == SafetensorsDtype::f32 ? "integers, not floats" : "floats, not integers");
  }
  return stored;
}

std::span<const float> SafetensorsFile::floats(const std::string& name) const {
  const StoredTensor& stored = tensor_of(name, SafetensorsDtype::f32);
  // All widths are multiples of four and there are no holes, so floats are always aligned.
  return {reinterpret_cast<const float*>(buffer_.get() + stored.begin),
          (stored.end - stored.begin) / sizeof(float)};
}

std::vector<std::int64_t> SafetensorsFile::integers(const std::string& name) const {
  const StoredTensor& stored = tensor_of(name, SafetensorsDtype::i64);
  std::vector<std::int64_t> values((stored.end - stored.begin) / sizeof(std::int64_t));
  std::copy_n(buffer_.get() + stored.begin, stored.end - stored.begin,
              std::as_writable_bytes(std::span(values)).data());
  return values;
}

}  // namespace cohort
