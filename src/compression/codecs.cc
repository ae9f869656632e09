#include "compression/codecs.h"

#include <algorithm>
#include <functional>

#include "base/fail.h"
#include "base/names.h"

namespace cohort::compression {
namespace {

/// What make_codec() is asked for.
struct Order {
  const CompressionOptions& options;
  const CodecShape& shape;
  std::uint64_t seed;
};

/// A codec is a row here: all that others know of it is read from these.
struct Kind : CodecRow {
  std::function<std::unique_ptr<Codec>(const Order&)> make;
};

const std::vector<Kind>& kinds() {
  using Sum = CodecRow::Sum;
  static const std::vector<Kind> all = {
      {{"none", {}, true, Sum::of_floats, true, "floats as they are"},
       [](const Order& o) { return make_plain_codec(o.shape.count); }},
      {{"fp16", {}, true, Sum::by_owners, true, "half the bits, 11 of precision"},
       [](const Order& o) { return make_fp16_codec(o.shape.count); }},
      {{"bf16", {}, true, Sum::by_owners, true, "half the bits, 8 of precision"},
       [](const Order& o) { return make_bf16_codec(o.shape.count); }},
      {{"int8",
        {},
        true,
        Sum::by_owners,
        true,
        "a byte each, by the largest of a block, rounded up or down by chance"},
       [](const Order& o) { return make_int8_codec(o.shape.count, o.seed); }},
      {{"sign",
        {"momentum_correction"},
        false,
        Sum::of_all_messages,
        false,
        "a bit each, by the mean size of a block"},
       [](const Order& o) { return make_sign_codec(o.shape.count); }},
      {{"topk",
        {"ratio", "momentum_correction"},
        true,
        Sum::of_all_messages,
        true,
        "only the largest, with their places"},
       [](const Order& o) { return make_topk_codec(o.shape.count, o.options.ratio); }},
      {{"lowrank", {"rank"}, false, Sum::of_factors, false, "two factors of every matrix"},
       [](const Order& o) { return make_lowrank_codec(o.shape, o.options.rank, o.seed); }},
  };
  return all;
}

}  // namespace

const std::vector<CodecRow>& codec_table() {
  static const std::vector<CodecRow> rows(kinds().begin(), kinds().end());
  return rows;
}

const CodecRow& codec_row(const std::string& kind) {
  return row_named("compression", kind, kinds());
}

const std::vector<std::string>& codec_kinds() {
  static const std::vector<std::string> names = names_of(kinds());
  return names;
}

std::unique_ptr<Codec> make_codec(const CompressionOptions& options, const CodecShape& shape,
                                  std::uint64_t seed) {
  return row_named("compression", options.kind, kinds()).make({options, shape, seed});
}

std::vector<MatrixShape> matrices_within(const std::vector<MatrixShape>& all, std::size_t begin,
                                         std::size_t end) {
  std::vector<MatrixShape> within;
  for (const MatrixShape& matrix : all) {
    if (matrix.columns == 0 || end <= matrix.offset) continue;
    const std::size_t cut = begin > matrix.offset ? begin - matrix.offset : 0;
    const std::size_t first = (cut + matrix.columns - 1) / matrix.columns;
    const std::size_t last = std::min(matrix.rows, (end - matrix.offset) / matrix.columns);
    if (first >= last) continue;
    within.push_back({.offset = matrix.offset + first * matrix.columns - begin,
                      .rows = last - first,
                      .columns = matrix.columns});
  }
  return within;
}

void check_count(std::string_view kind, std::size_t count, std::size_t expected) {
  if (count == expected) return;
  fail(ErrorCode::invalid, "a {} codec made for vectors of {} floats was given one of {}", kind,
       expected, count);
}

void check_length(std::string_view kind, std::size_t bytes, std::size_t expected) {
  if (bytes == expected) return;
  fail(ErrorCode::corrupt, "a {} message has {} bytes; this vector's would have {}", kind, bytes,
       expected);
}

}  // namespace cohort::compression
