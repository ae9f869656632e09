#include <functional>

#include "base/rows.h"
#include "compression/codec.h"
#include "compression/half_codec.h"
#include "compression/int8_codec.h"
#include "compression/lowrank_codec.h"
#include "compression/plain_codec.h"
#include "compression/sign_codec.h"
#include "compression/topk_codec.h"

namespace cohort {
namespace {

struct Order {
  const CompressionOptions& options;
  const CodecShape& shape;
  std::uint64_t seed;
};

struct Kind : CodecRow {
  std::function<std::unique_ptr<Codec>(const Order&)> make;
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {
      {{"none", {}, true, "floats as they are"},
       [](const Order& o) { return make_plain_codec(o.shape.count); }},
      {{"fp16", {}, true, "half the bits, 11 of precision"},
       [](const Order& o) { return make_fp16_codec(o.shape.count); }},
      {{"bf16", {}, true, "half the bits, 8 of precision"},
       [](const Order& o) { return make_bf16_codec(o.shape.count); }},
      {{"int8", {}, true, "a byte each, by the largest of a block, rounded up or down by chance"},
       [](const Order& o) { return make_int8_codec(o.shape.count, o.seed); }},
      {{"sign", {"momentum_correction"}, false, "a bit each, by the mean size of a block"},
       [](const Order& o) { return make_sign_codec(o.shape.count); }},
      {{"topk", {"ratio", "momentum_correction"}, true, "only the largest, with their places"},
       [](const Order& o) { return make_topk_codec(o.shape.count, o.options.ratio); }},
      {{"lowrank", {"rank"}, false, "two factors of every matrix"},
       [](const Order& o) { return make_lowrank_codec(o.shape, o.options.rank, o.seed); }},
  };
  return all;
}

}  // namespace

const std::vector<CodecRow>& codec_table() {
  static const std::vector<CodecRow> rows(kinds().begin(), kinds().end());
  return rows;
}

const std::vector<std::string>& codec_kinds() {
  static const std::vector<std::string> names = names_of(kinds());
  return names;
}

std::unique_ptr<Codec> make_codec(const CompressionOptions& options, const CodecShape& shape,
                                  std::uint64_t seed) {
  return row_named("compression", options.kind, kinds()).make({options, shape, seed});
}

}  // namespace cohort
