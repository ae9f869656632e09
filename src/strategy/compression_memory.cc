#include "strategy/compression_memory.h"

#include "strategy/own_text.h"

namespace cohort {
namespace {

// The first vector is a text: one of these, then the kind.
const std::string kFixedLabel = "all-reduce compressed by ";
const std::string kAutoLabel = "all-reduce compressed by auto ";

}  // namespace

std::vector<std::vector<float>> CompressionMemory::as_floats() const {
  const std::string text = (is_auto ? kAutoLabel : kFixedLabel) + compression;
  return {floats_of_text(text), exchange.rest, exchange.velocity, exchange.codec};
}

std::optional<CompressionMemory> CompressionMemory::read(const TrainingState* state) {
  if (state == nullptr || state->own.size() != 4) return std::nullopt;
  const auto text = text_of_floats(state->own[0]);
  if (!text || !text->starts_with(kFixedLabel)) return std::nullopt;
  const bool tried = text->starts_with(kAutoLabel);
  return CompressionMemory{
      .compression = text->substr(tried ? kAutoLabel.size() : kFixedLabel.size()),
      .is_auto = tried,
      .exchange = {.rest = state->own[1], .velocity = state->own[2], .codec = state->own[3]}};
}

}  // namespace cohort
