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
  std::vector<std::vector<float>> all = {floats_of_text(text), exchange.rest, exchange.velocity,
                                         exchange.codec};
  if (if_done) all.insert(all.end(), {if_done->rest, if_done->velocity, if_done->codec});
  return all;
}

std::optional<CompressionMemory> CompressionMemory::read(const TrainingState* state) {
  if (state == nullptr || (state->own.size() != 4 && state->own.size() != 7)) return std::nullopt;
  const auto text = text_of_floats(state->own[0]);
  if (!text || !text->starts_with(kFixedLabel)) return std::nullopt;
  const bool tried = text->starts_with(kAutoLabel);
  const auto exchange_at = [&](std::size_t at) {
    return ExchangeMemory{
        .rest = state->own[at], .velocity = state->own[at + 1], .codec = state->own[at + 2]};
  };
  CompressionMemory memory{
      .compression = text->substr(tried ? kAutoLabel.size() : kFixedLabel.size()),
      .is_auto = tried,
      .exchange = exchange_at(1)};
  if (state->own.size() == 7) memory.if_done = exchange_at(4);
  return memory;
}

}  // namespace cohort
