#include "strategy/allreduce/compression_memory.h"

#include <span>

namespace cohort {
namespace {

// The meaning is one of these, then the kind.
const std::string kFixedLabel = "all-reduce compressed by ";
const std::string kAutoLabel = "all-reduce compressed by auto ";

// An exchange is three vectors of floats, and of the numbers the codecs' of it with their count
// before them.
constexpr std::size_t kVectors = 3;

void append(const ExchangeMemory& exchange, OwnMemory& own) {
  own.floats.insert(own.floats.end(), {exchange.rest, exchange.velocity, exchange.codec.floats});
  const auto& numbers = exchange.codec.numbers;
  own.numbers.push_back(static_cast<std::int64_t>(numbers.size()));
  own.numbers.insert(own.numbers.end(), numbers.begin(), numbers.end());
}

/// The next exchange, which is taken off; nothing where there is none.
std::optional<ExchangeMemory> take(std::span<const std::vector<float>>& floats,
                                   std::span<const std::int64_t>& numbers) {
  if (floats.size() < kVectors || numbers.empty()) return std::nullopt;
  const std::int64_t count = numbers.front();
  numbers = numbers.subspan(1);
  if (count < 0 || static_cast<std::size_t>(count) > numbers.size()) return std::nullopt;
  const auto own = numbers.first(static_cast<std::size_t>(count));
  ExchangeMemory exchange{.rest = floats[0],
                          .velocity = floats[1],
                          .codec = {.floats = floats[2], .numbers = {own.begin(), own.end()}}};
  floats = floats.subspan(kVectors);
  numbers = numbers.subspan(own.size());
  return exchange;
}

}  // namespace

OwnMemory CompressionMemory::as_own() const {
  OwnMemory own{.meaning = (is_auto ? kAutoLabel : kFixedLabel) + compression};
  append(exchange, own);
  if (if_done) append(*if_done, own);
  return own;
}

std::optional<CompressionMemory> CompressionMemory::read(const TrainingState* state) {
  if (state == nullptr || !state->own.meaning.starts_with(kFixedLabel)) return std::nullopt;
  const OwnMemory& own = state->own;
  const bool tried = own.meaning.starts_with(kAutoLabel);
  std::span<const std::vector<float>> floats = own.floats;
  std::span<const std::int64_t> numbers = own.numbers;
  auto exchange = take(floats, numbers);
  if (!exchange) return std::nullopt;
  CompressionMemory memory{
      .compression = own.meaning.substr(tried ? kAutoLabel.size() : kFixedLabel.size()),
      .is_auto = tried,
      .exchange = *std::move(exchange)};
  memory.if_done = take(floats, numbers);
  return memory;
}

}  // namespace cohort
