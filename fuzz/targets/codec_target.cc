// Messages of every codec. The first byte names the codec; behind eight bytes stands the message, of
// a vector of which lowrank factors a part. A message that is refused must have changed nothing.
// (It begins at an even address: clang's sanitizer does not believe that half_codec.cc may read its
// halves at odd ones. The codecs' own tests, by g++, have such messages.)

#include "base/fail.h"
#include "compression/codec.h"
#include "targets.h"

namespace cohort::fuzz {
namespace {

constexpr std::size_t kCodecHead = 8;
constexpr std::size_t kCount = 1100;  // More than a block, and no multiple of anything.

std::unique_ptr<compression::Codec> codec_of(std::size_t number) {
  const auto& kinds = compression::codec_kinds();
  return compression::make_codec({.kind = kinds[number % kinds.size()], .ratio = 0.01, .rank = 2},
                                 {.count = kCount, .matrices = {{3, 20, 30}}}, 1);
}

}  // namespace

void codec(Bytes input) {
  if (input.size() < kCodecHead) return;
  const auto codec = codec_of(std::to_integer<std::size_t>(input[0]));
  const Bytes message = input.subspan(kCodecHead);
  std::vector<float> values(kCount, 1.0F);
  const std::vector<float> before = values;
  try {
    codec->add(message, values);
  } catch (const Error&) {
    require(values == before, "a message that is refused changes nothing");
    throw;
  }
  codec->subtract(message, values);
  codec->clear(message, values);
  codec->decode(message, values);
}

Seeds codec_seeds() {
  std::vector<float> values(kCount);
  for (std::size_t i = 0; i < kCount; ++i) values[i] = static_cast<float>(i % 17) - 8;
  Seeds seeds;
  for (std::size_t kind = 0; kind < compression::codec_kinds().size(); ++kind) {
    const auto codec = codec_of(kind);
    std::vector<std::byte> message(codec->max_bytes());
    message.resize(codec->encode(values, message));
    seeds.push_back(std::string(kCodecHead, static_cast<char>(kind)).append(text_of(message)));
  }
  return seeds;
}

}  // namespace cohort::fuzz
