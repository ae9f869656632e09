// IDX files of one and of three dimensions.

#include "base/fail.h"
#include "formats/idx_file.h"
#include "targets.h"

namespace cohort::fuzz {
namespace {

void read_idx(const std::filesystem::path& path, int dimensions) {
  const formats::IdxFile file(path, dimensions);
  int sum = 0;
  for (const std::byte value : file.values()) sum += std::to_integer<int>(value);
  require(sum <= 255 * static_cast<int>(file.values().size()), "all values can be read");
}

}  // namespace

void idx(Bytes input) {
  const FileOf file(input);
  const bool is_labels = input.size() > 3 && input[3] == std::byte{1};
  read_idx(file.path(), is_labels ? 1 : 3);
}

Seeds idx_seeds() {
  const auto header = [](std::string_view bytes) { return std::string(bytes); };
  return {header({"\0\0\x08\x01\0\0\0\x03", 8}) + "abc",
          header({"\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\x02", 16}) + "abcd",
          header({"\0\0\x08\x01\0\0\0\0", 8})};
}

}  // namespace cohort::fuzz
