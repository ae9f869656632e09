#include <algorithm>
#include <functional>

#include "base/nearest_name.h"
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

struct Kind {
  std::string name;
  std::function<std::unique_ptr<Codec>(const Order&)> make;
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {
      {"none", [](const Order& o) { return make_plain_codec(o.shape.count); }},
      {"fp16", [](const Order& o) { return make_fp16_codec(o.shape.count); }},
      {"bf16", [](const Order& o) { return make_bf16_codec(o.shape.count); }},
      {"int8", [](const Order& o) { return make_int8_codec(o.shape.count, o.seed); }},
      {"sign", [](const Order& o) { return make_sign_codec(o.shape.count); }},
      {"topk", [](const Order& o) { return make_topk_codec(o.shape.count, o.options.ratio); }},
      {"lowrank",
       [](const Order& o) { return make_lowrank_codec(o.shape, o.options.rank, o.seed); }},
  };
  return all;
}

}  // namespace

const std::vector<std::string>& codec_kinds() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Kind& kind : kinds()) all.push_back(kind.name);
    return all;
  }();
  return names;
}

std::unique_ptr<Codec> make_codec(const CompressionOptions& options, const CodecShape& shape,
                                  std::uint64_t seed) {
  check_known("compression", options.kind, codec_kinds());
  const auto named = [&](const Kind& kind) { return kind.name == options.kind; };
  return std::ranges::find_if(kinds(), named)->make({options, shape, seed});
}

}  // namespace cohort
