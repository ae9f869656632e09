#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "base/fail.h"
#include "base/files.h"
#include "base/integers.h"
#include "checkpoint/safetensors.h"

namespace cohort::checkpoint {
namespace {

static_assert(std::endian::native == std::endian::little, "values are written as they stand");

constexpr std::size_t kHeaderAlignment = 8;

bool is_float(const TensorView& tensor) {
  return std::holds_alternative<std::span<const float>>(tensor.values);
}

const char* dtype_of(const TensorView& tensor) {
  if (is_float(tensor)) return "F32";
  return std::holds_alternative<std::span<const double>>(tensor.values) ? "F64" : "I64";
}

std::string_view bytes_of(const TensorView& tensor) {
  return std::visit(
      [](const auto& values) {
        return std::string_view(reinterpret_cast<const char*>(values.data()), values.size_bytes());
      },
      tensor.values);
}

std::size_t count_of(const TensorView& tensor) {
  return std::visit([](const auto& values) { return values.size(); }, tensor.values);
}

void check_tensors(const std::string& path, std::span<const TensorView> tensors) {
  std::set<std::string_view> names{"__metadata__"};
  for (const TensorView& tensor : tensors) {
    if (!names.insert(tensor.name).second) {
      fail(ErrorCode::invalid, "{}: the name \"{}\" is taken; tensors need names of their own",
           path, tensor.name);
    }
    const auto count = checked_product(std::span(tensor.shape));
    if (count != static_cast<std::int64_t>(count_of(tensor))) {
      fail(ErrorCode::invalid, "{}: tensor \"{}\" of shape [{}] has {} values instead of {}", path,
           tensor.name, fmt::join(tensor.shape, ", "), count_of(tensor),
           count ? std::to_string(*count) : "more than can be counted");
    }
  }
}

/// The wider type first, so that every tensor starts at a multiple of its own width.
std::vector<const TensorView*> in_file_order(std::span<const TensorView> tensors) {
  std::vector<const TensorView*> order;
  for (const TensorView& tensor : tensors) order.push_back(&tensor);
  std::stable_partition(order.begin(), order.end(),
                        [](const TensorView* tensor) { return !is_float(*tensor); });
  return order;
}

std::string header_of(std::span<const TensorView* const> tensors,
                      const SafetensorsMetadata& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::size_t begin = 0;
  for (const TensorView* tensor : tensors) {
    const std::size_t end = begin + bytes_of(*tensor).size();
    header[tensor->name] = {
        {"dtype", dtype_of(*tensor)}, {"shape", tensor->shape}, {"data_offsets", {begin, end}}};
    begin = end;
  }
  std::string text = header.dump();
  const std::size_t padded = (text.size() + kHeaderAlignment - 1) / kHeaderAlignment;
  text.resize(padded * kHeaderAlignment, ' ');
  return text;
}

}  // namespace

// The length of the header (8 bytes), the header (JSON, filled up with spaces so that values begin
// at a multiple of 8), then the values of all tensors without a gap, straight from the caller's
// memory.
void write_safetensors(const ByteSink& sink, const std::filesystem::path& path,
                       std::span<const TensorView> tensors, const SafetensorsMetadata& metadata) {
  check_tensors(path, tensors);
  const std::vector<const TensorView*> order = in_file_order(tensors);
  std::string header;
  try {
    header = header_of(order, metadata);
  } catch (const nlohmann::json::exception& wrong) {
    fail(ErrorCode::invalid, "{}: names and metadata must be UTF-8 text: {}", path.string(),
         wrong.what());
  }
  const std::uint64_t length = header.size();
  sink({reinterpret_cast<const char*>(&length), sizeof length});
  sink(header);
  for (const TensorView* tensor : order) sink(bytes_of(*tensor));
}

void write_safetensors(const std::filesystem::path& path, std::span<const TensorView> tensors,
                       const SafetensorsMetadata& metadata) {
  AtomicFile file(path);
  write_safetensors([&](std::string_view bytes) { file.write(bytes); }, path, tensors, metadata);
  file.commit();
}

}  // namespace cohort::checkpoint
