#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <tuple>

#include "base/fail.h"
#include "base/files.h"
#include "base/integers.h"
#include "base/json.h"
#include "base/memory_room.h"
#include "checkpoint/safetensors.h"

namespace cohort::checkpoint {
namespace {

using Json = nlohmann::json;

template <class... Args>
[[noreturn]] void corrupt(const std::string& path, fmt::format_string<Args...> what,
                          Args&&... args) {
  fail(ErrorCode::corrupt, "{} is not a sound safetensors file: {}", path,
       fmt::format(what, std::forward<Args>(args)...));
}

void read_all(InputFile& file, std::span<std::byte> into) {
  const std::size_t got = file.read(into);
  if (got < into.size()) corrupt(file.path(), "it ends {} bytes too early", into.size() - got);
}

/// A file may be anybody's. So the order is: how long the header says it is, against the file's
/// size and what is allowed; the header's shape; of every tensor its type, its shape and that its
/// place fits them; that all places together are the rest of the file, once; what the caller
/// expects. Only then is memory taken for values, and any of them read. Leaves the file where its
/// values begin.
Json read_header(InputFile& file, std::uint64_t most, std::uint64_t& values) {
  const std::string path = file.path().string();
  std::uint64_t length = 0;
  read_all(file, std::as_writable_bytes(std::span(&length, 1)));
  const std::uint64_t follow = file.size() - std::min<std::uint64_t>(file.size(), sizeof length);
  if (length > follow) {
    corrupt(path, "its header claims {} bytes, but {} follow", length, follow);
  }
  if (length > most) {
    corrupt(path, "its header has {} bytes, more than the {} allowed", length, most);
  }
  values = follow - length;
  std::string text(length, '\0');
  read_all(file, std::as_writable_bytes(std::span(text)));
  Json header = parse_json(text);
  if (!header.is_object()) corrupt(path, "its header is not a JSON object");
  return header;
}

SafetensorsMetadata metadata_of(const Json& header, const std::string& path) {
  SafetensorsMetadata metadata;
  const auto found = header.find("__metadata__");
  if (found == header.end()) return metadata;
  if (!found->is_object()) corrupt(path, "its metadata is not a JSON object");
  for (const auto& [key, value] : found->items()) {
    if (!value.is_string()) corrupt(path, "its metadata \"{}\" is not a string", excerpt(key));
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

const char* plural_of(SafetensorsDtype dtype) {
  if (dtype == SafetensorsDtype::i64) return "integers";
  return dtype == SafetensorsDtype::f32 ? "floats" : "doubles";
}

SafetensorsDtype dtype_of(const Json& entry, const std::string& name, const std::string& path) {
  const Json dtype = entry.value("dtype", Json());
  if (dtype == "F32") return SafetensorsDtype::f32;
  if (dtype == "F64") return SafetensorsDtype::f64;
  if (dtype == "I64") return SafetensorsDtype::i64;
  corrupt(path, "tensor \"{}\" has dtype {}; F32, F64 and I64 can be read", excerpt(name),
          excerpt(dtype.dump()));
}

std::vector<std::uint64_t> counts_of(const Json& entry, const char* key, const std::string& name,
                                     const std::string& path) {
  const Json list = entry.value(key, Json());
  const auto is_count = [](const Json& value) { return value.is_number_unsigned(); };
  if (!list.is_array() || !std::all_of(list.begin(), list.end(), is_count)) {
    corrupt(path, "tensor \"{}\" has {} that are no list of counts", excerpt(name), key);
  }
  return list.get<std::vector<std::uint64_t>>();
}

/// What the shape needs in bytes; nothing where that number has no room.
std::optional<std::uint64_t> bytes_needed(const std::vector<std::uint64_t>& shape,
                                          SafetensorsDtype dtype) {
  // Not more than a signed number can say, of any side: the shape becomes signed.
  constexpr std::uint64_t kLongestSide = std::uint64_t{1} << 60;
  if (std::ranges::any_of(shape, [](std::uint64_t side) { return side > kLongestSide; })) return {};
  const auto values = checked_product(std::span(shape));
  return values ? checked_product(*values, std::uint64_t{width_of(dtype)}) : std::nullopt;
}

std::string listed(const std::vector<std::uint64_t>& counts) {
  return excerpt(fmt::format("{}", fmt::join(counts, ", ")));
}

StoredTensor parse_tensor(const Json& entry, const std::string& name, const std::string& path) {
  if (!entry.is_object()) {
    corrupt(path, "tensor \"{}\" is not described by an object", excerpt(name));
  }
  const SafetensorsDtype dtype = dtype_of(entry, name, path);
  const auto shape = counts_of(entry, "shape", name, path);
  const auto place = counts_of(entry, "data_offsets", name, path);
  if (place.size() != 2 || place[0] > place[1] ||
      place[1] - place[0] != bytes_needed(shape, dtype)) {
    corrupt(path, "the data_offsets [{}] of tensor \"{}\" do not fit its shape [{}]", listed(place),
            excerpt(name), listed(shape));
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
    const std::string name = excerpt(tensor.name);
    if (tensor.begin < reached) corrupt(path, "tensor \"{}\" overlaps another", name);
    if (tensor.begin > reached) corrupt(path, "there is a hole before tensor \"{}\"", name);
    if (tensor.end > size) {
      corrupt(path, "tensor \"{}\" ends at byte {} of {}", name, tensor.end, size);
    }
    reached = tensor.end;
  }
  if (reached != size) corrupt(path, "its last {} bytes belong to no tensor", size - reached);
}

/// Sorted by place; an empty tensor has no place of its own, so names decide between equal ones.
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

SafetensorsSource::SafetensorsSource(const std::filesystem::path& path,
                                     const SafetensorsExpectation& expected)
    : file_(path, expected.links) {
  const Json header = read_header(file_, expected.most_header_bytes, values_);
  begin_ = file_.size() - values_;
  metadata_ = metadata_of(header, path.string());
  tensors_ = tensors_of(header, values_, path.string());
  if (expected.check) expected.check(tensors_);
}

// By position, and not from where the last read ended: several may read from one source at once.
void SafetensorsSource::read(const StoredTensor& tensor, std::size_t from,
                             std::span<std::byte> into) const {
  std::uint64_t at = begin_ + tensor.begin + from;
  while (!into.empty()) {
    const ssize_t got = ::pread(file_.fd(), into.data(), into.size(), static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_errno("cannot read " + path().string());
    if (got == 0) corrupt(path().string(), "it ends {} bytes too early", into.size());
    into = into.subspan(static_cast<std::size_t>(got));
    at += static_cast<std::uint64_t>(got);
  }
}

SafetensorsFile read_safetensors(const std::filesystem::path& path,
                                 const SafetensorsExpectation& expected) {
  SafetensorsSource source(path, expected);
  SafetensorsFile file;
  file.path_ = path.string();
  check_memory_room(file.path_, source.values_);
  file.buffer_ = std::make_unique_for_overwrite<std::byte[]>(source.values_);
  read_all(source.file_, {file.buffer_.get(), source.values_});
  file.tensors_ = std::move(source.tensors_);
  file.metadata_ = std::move(source.metadata_);
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
    fail(ErrorCode::invalid, "tensor \"{}\" of {} holds {}, not {}", name, path_,
         plural_of(stored.dtype), plural_of(dtype));
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
  return copy_of<std::int64_t>(tensor_of(name, SafetensorsDtype::i64));
}

std::vector<double> SafetensorsFile::doubles(const std::string& name) const {
  return copy_of<double>(tensor_of(name, SafetensorsDtype::f64));
}

template <class T>
std::vector<T> SafetensorsFile::copy_of(const StoredTensor& stored) const {
  std::vector<T> values((stored.end - stored.begin) / sizeof(T));
  std::copy_n(buffer_.get() + stored.begin, stored.end - stored.begin,
              std::as_writable_bytes(std::span(values)).data());
  return values;
}

}  // namespace cohort::checkpoint
