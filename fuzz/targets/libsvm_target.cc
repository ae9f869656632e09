// LIBSVM files.

#include "base/fail.h"
#include "formats/sparse_row.h"
#include "formats/text_window.h"
#include "targets.h"

namespace cohort::fuzz {

void libsvm(Bytes input) {
  const FileOf file(input);
  formats::LineReader reader(file.path());
  formats::SparseRow row;
  for (std::string_view line; reader.next(line);) {
    if (!formats::read_sparse_row(line, {reader.file(), reader.line()}, row)) continue;
    std::int64_t before = -1;
    for (const auto& entry : row.entries) {
      require(entry.column > before && entry.column < 1 << 24, "columns ascend to a known end");
      before = entry.column;
    }
  }
}

Seeds libsvm_seeds() {
  return {"1 1:0.5 3:2\n-1 2:-1e2 16777216:+7\n", "# words\n\n+1 1:7 # more\r\n3:1\n", "0"};
}

}  // namespace cohort::fuzz
