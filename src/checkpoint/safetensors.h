#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/files.h"

namespace cohort::checkpoint {

/// The safetensors format, which other programs read and write too. Numbers are little endian:
///
///   ┌────────────┬──────────────────────────────────────────┬──────────────────────────────┐
///   │ n, u64     │ header: n bytes, JSON and spaces         │ values of all tensors        │
///   └────────────┴──────────────────────────────────────────┴──────────────────────────────┘
///    8 bytes      {"__metadata__": {"key": "text"},          0                             end
///                  "weight": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, …}
///
/// The header gives for each name the dtype, the shape and the place [begin, end) of its values,
/// counted from the first byte after the header. The places leave no hole and do not overlap; the
/// order of names says nothing. Values stand in the order of rows. We write F64 and I64 before F32
/// and fill the header up to a multiple of 8, so that every tensor is aligned to its own width.
/// Nothing in such a file is ever executed.
///
/// A reader trusts nothing: every number is checked before it is counted with or memory is taken
/// for it, and the header before any value is read.

/// A tensor to write; the names and values are the caller's. As many values as the shape says.
struct TensorView {
  std::string name;
  std::vector<std::int64_t> shape;
  std::variant<std::span<const float>, std::span<const double>, std::span<const std::int64_t>>
      values;
};

using SafetensorsMetadata = std::map<std::string, std::string>;

/// Writes the file atomically, straight from the views. The same tensors give the same bytes.
/// Throws Error(invalid) for a name that is there twice or values that do not fill their shape.
void write_safetensors(const std::filesystem::path& path, std::span<const TensorView> tensors,
                       const SafetensorsMetadata& metadata = {});

/// Takes the bytes of a file piece by piece, in their order.
using ByteSink = std::function<void(std::string_view bytes)>;

/// The same bytes for a sink, straight from the views. `path` is what errors call the file.
void write_safetensors(const ByteSink& sink, const std::filesystem::path& path,
                       std::span<const TensorView> tensors,
                       const SafetensorsMetadata& metadata = {});

enum class SafetensorsDtype { f32, f64, i64 };

/// Bytes of one value.
constexpr std::size_t width_of(SafetensorsDtype dtype) {
  return dtype == SafetensorsDtype::f32 ? sizeof(float) : sizeof(std::int64_t);
}

struct StoredTensor {
  std::string name;
  SafetensorsDtype dtype = SafetensorsDtype::f32;
  std::vector<std::int64_t> shape;
  std::size_t begin = 0;  ///< In bytes of the file's buffer.
  std::size_t end = 0;
};

/// What is known of a file before it is read, so that no more of it is taken into memory than there
/// is use for.
struct SafetensorsExpectation {
  std::uint64_t most_header_bytes = 100'000'000;  ///< What other readers of the format take.
  /// Gets the tensors before any value is read, and throws where they are not those wanted.
  std::function<void(const std::vector<StoredTensor>&)> check = {};
  Links links = Links::follow;
};

/// A file that was read and found right, with all its values in memory. Spans into it live as long
/// as it does.
class SafetensorsFile {
 public:
  /// In the order of their places in the file.
  const std::vector<StoredTensor>& tensors() const { return tensors_; }
  const SafetensorsMetadata& metadata() const { return metadata_; }

  /// Throws Error(not_found) naming file and tensor.
  const StoredTensor& tensor(const std::string& name) const;

  /// The values of a tensor. Throws Error(not_found), or Error(invalid) where it has another dtype.
  std::span<const float> floats(const std::string& name) const;
  std::vector<double> doubles(const std::string& name) const;
  std::vector<std::int64_t> integers(const std::string& name) const;

 private:
  friend SafetensorsFile read_safetensors(const std::filesystem::path& path,
                                          const SafetensorsExpectation& expected);

  const StoredTensor& tensor_of(const std::string& name, SafetensorsDtype dtype) const;
  template <class T>
  std::vector<T> copy_of(const StoredTensor& stored) const;

  std::string path_;
  std::vector<StoredTensor> tensors_;
  SafetensorsMetadata metadata_;
  std::unique_ptr<std::byte[]> buffer_;
};

/// A file whose header was read and found right. Values are read where they are asked for, so that
/// of a large file only what is needed is ever in memory.
class SafetensorsSource {
 public:
  /// Throws as read_safetensors() does.
  explicit SafetensorsSource(const std::filesystem::path& path,
                             const SafetensorsExpectation& expected = {});

  const std::filesystem::path& path() const { return file_.path(); }
  const std::vector<StoredTensor>& tensors() const { return tensors_; }
  const SafetensorsMetadata& metadata() const { return metadata_; }

  /// The bytes of a tensor of this file from number `from` on, which it must have.
  void read(const StoredTensor& tensor, std::size_t from, std::span<std::byte> into) const;

 private:
  friend SafetensorsFile read_safetensors(const std::filesystem::path& path,
                                          const SafetensorsExpectation& expected);

  InputFile file_;
  std::uint64_t values_ = 0;  // Bytes of them,
  std::uint64_t begin_ = 0;   // which begin here in the file.
  std::vector<StoredTensor> tensors_;
  SafetensorsMetadata metadata_;
};

/// Reads and checks the whole file. Throws Error(not_found), Error(io), or Error(corrupt) naming
/// the file and what is wrong: truncated, a place out of bounds, overlap, hole, unknown dtype.
SafetensorsFile read_safetensors(const std::filesystem::path& path,
                                 const SafetensorsExpectation& expected = {});

}  // namespace cohort::checkpoint
