#include "strategy/compression_memory.h"

#include "strategy/own_text.h"

namespace cohort {
namespace {

// The first vector is a text: one of these, then the kind.
const std::string kFixed = "all-reduce compressed by ";
const std::string kAuto = "all-reduce compressed by auto ";

}  // namespace

std::vector<std::vector<float>> CompressionMemory::as_floats() const {
  const std::string text = (is_auto ? kAuto : kFixed) + compression;
  return {floats_of_text(text), exchange.rest, exchange.velocity, exchange.codec};
}

std::optional<CompressionMemory> CompressionMemory::read(const TrainingState* state) {
  if (state == nullptr || state->own.size() != 4) return std::nullopt;
  const auto text = text_of_floats(state->own[0]);
  if (!text || !text->starts_with(kFixed)) return std::nullopt;
  const bool tried = text->starts_with(kAuto);
  return CompressionMemory{
      .compression = text->substr(tried ? kAuto.size() : kFixed.size()),
      .is_auto = tried,
      .exchange = {.rest = state->own[1], .velocity = state->own[2], .codec = state->own[3]}};
}

}  // namespace cohort
