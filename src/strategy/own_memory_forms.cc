#include "strategy/own_memory_forms.h"

namespace cohort::strategy {
namespace {

// The meaning is one of these, then the kind of codec.
const std::string kFixedLabel = "all-reduce compressed by ";
const std::string kAutoLabel = "all-reduce compressed by auto ";
const std::string kLinkLabel = "servers: messages by ";

// Vectors of floats of an exchange.
constexpr std::size_t kExchangeVectors = 3;
// The first vectors of floats of a link; then two of every server.
constexpr std::size_t kLinkVectors = 3;

/// The one form in which codecs stand in all of these: their floats are a vector, its numbers
/// follow their count.
void append_codec(const compression::CodecMemory& codec, tensor::OwnMemory& own) {
  own.floats.push_back(codec.floats);
  own.numbers.push_back(static_cast<std::int64_t>(codec.numbers.size()));
  own.numbers.insert(own.numbers.end(), codec.numbers.begin(), codec.numbers.end());
}

/// The next codec's, whose numbers are taken off; nothing where there are not as many.
std::optional<compression::CodecMemory> take_codec(const std::vector<float>& floats,
                                                   std::span<const std::int64_t>& numbers) {
  if (numbers.empty()) return std::nullopt;
  const std::int64_t count = numbers.front();
  numbers = numbers.subspan(1);
  if (count < 0 || static_cast<std::size_t>(count) > numbers.size()) return std::nullopt;
  const auto own = numbers.first(static_cast<std::size_t>(count));
  numbers = numbers.subspan(own.size());
  return compression::CodecMemory{.floats = floats, .numbers = {own.begin(), own.end()}};
}

void append_exchange(const collective::ExchangeMemory& exchange, tensor::OwnMemory& own) {
  own.floats.push_back(exchange.rest);
  own.floats.push_back(exchange.velocity);
  append_codec(exchange.codec, own);
}

/// The next exchange, which is taken off; nothing where there is none.
std::optional<collective::ExchangeMemory> take_exchange(std::span<const std::vector<float>>& floats,
                                                        std::span<const std::int64_t>& numbers) {
  if (floats.size() < kExchangeVectors) return std::nullopt;
  auto codec = take_codec(floats[2], numbers);
  if (!codec) return std::nullopt;
  collective::ExchangeMemory exchange{
      .rest = floats[0], .velocity = floats[1], .codec = *std::move(codec)};
  floats = floats.subspan(kExchangeVectors);
  return exchange;
}

}  // namespace

void set_own(tensor::TrainingState& state, std::string_view meaning,
             const std::vector<std::span<const float>>& floats) {
  state.own.meaning = meaning;
  state.own.doubles.clear();
  state.own.numbers.clear();
  state.own.floats.resize(floats.size());
  for (std::size_t i = 0; i < floats.size(); ++i) {
    state.own.floats[i].assign(floats[i].begin(), floats[i].end());
  }
}

std::span<const std::vector<float>> own_floats(const tensor::TrainingState* state,
                                               std::string_view meaning) {
  const tensor::OwnMemory* own = tensor::own_of(state, meaning);
  return own != nullptr ? std::span(own->floats) : std::span<const std::vector<float>>();
}

tensor::OwnMemory CompressionMemory::as_own() const {
  tensor::OwnMemory own{.meaning = (is_auto ? kAutoLabel : kFixedLabel) + compression};
  append_exchange(exchange, own);
  if (if_done) append_exchange(*if_done, own);
  return own;
}

std::optional<CompressionMemory> CompressionMemory::read(const tensor::TrainingState* state) {
  if (state == nullptr || !state->own.meaning.starts_with(kFixedLabel)) return std::nullopt;
  const tensor::OwnMemory& own = state->own;
  const bool tried = own.meaning.starts_with(kAutoLabel);
  std::span<const std::vector<float>> floats = own.floats;
  std::span<const std::int64_t> numbers = own.numbers;
  auto exchange = take_exchange(floats, numbers);
  if (!exchange) return std::nullopt;
  CompressionMemory memory{
      .compression = own.meaning.substr(tried ? kAutoLabel.size() : kFixedLabel.size()),
      .is_auto = tried,
      .exchange = *std::move(exchange)};
  memory.if_done = take_exchange(floats, numbers);
  return memory;
}

tensor::OwnMemory own_of_link(const server::LinkMemory& link, const std::string& codec) {
  if (link.empty()) return {};
  tensor::OwnMemory own{.meaning = kLinkLabel + codec,
                        .floats = {link.rest, link.velocity, link.has}};
  for (const server::LinkMemory::Codecs& one : link.codecs) {
    append_codec(one.worker, own);
    append_codec(one.server, own);
  }
  return own;
}

std::optional<server::LinkMemory> link_of(const tensor::OwnMemory& own, const std::string& codec) {
  if (own.meaning != kLinkLabel + codec || own.floats.size() < kLinkVectors) return std::nullopt;
  server::LinkMemory link{.rest = own.floats[0], .velocity = own.floats[1], .has = own.floats[2]};
  std::span<const std::int64_t> numbers = own.numbers;
  for (std::size_t i = kLinkVectors; i + 1 < own.floats.size(); i += 2) {
    auto worker = take_codec(own.floats[i], numbers);
    auto server = take_codec(own.floats[i + 1], numbers);
    if (!worker || !server) return std::nullopt;
    link.codecs.push_back({*std::move(worker), *std::move(server)});
  }
  return link;
}

std::optional<std::pair<std::string, server::LinkMemory>> any_link_of(
    const tensor::OwnMemory& own) {
  if (!own.meaning.starts_with(kLinkLabel)) return std::nullopt;
  const std::string codec = own.meaning.substr(kLinkLabel.size());
  auto link = link_of(own, codec);
  if (!link) return std::nullopt;
  return std::pair(codec, *std::move(link));
}

}  // namespace cohort::strategy
