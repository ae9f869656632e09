#include "strategy/worker_sums.h"

#include <array>
#include <cstring>

#include "compression/float_words.h"

namespace cohort {

WorkerSums::WorkerSums(const StrategyContext& context)
    : timeout_(context.timeout),
      activity_(context.activity),
      transport_(context.engine.connect(context.timeout.deadline())),
      executor_(*transport_) {}

CollectiveOptions WorkerSums::options(const char* algorithm) {
  return {.deadline = timeout_.deadline(), .tag = tag_++, .algorithm = algorithm};
}

void WorkerSums::sum(std::span<float> values) {
  const Waiting waiting(activity_, "sum over the workers");
  all_reduce(executor_, values, options("auto"));
}

void WorkerSums::mean(std::span<float> values) {
  sum(values);
  for (float& value : values) value /= static_cast<float>(world());
}

void WorkerSums::take_first(std::span<float> values) {
  const Waiting waiting(activity_, "broadcast of the chief's model");
  broadcast(executor_, values, 0, options("auto"));
}

// Nothing is calculated on the way: bits arrive as they are.
void WorkerSums::take_first(std::span<std::int64_t> numbers) {
  std::vector<float> bits(numbers.size_bytes() / sizeof(float));
  std::memcpy(bits.data(), numbers.data(), numbers.size_bytes());
  take_first(std::span(bits));
  std::memcpy(numbers.data(), bits.data(), numbers.size_bytes());
}

void WorkerSums::take_first(const ModelMemory& memory, ModelAge& age) {
  std::array<std::int64_t, 2> numbers = {age.step, age.updates};
  take_first(numbers);
  age = {.step = numbers[0], .updates = numbers[1]};
  take_first(memory.parameters);
  take_first(memory.buffers);
  // Before the first update all are zero.
  if (age.updates == 0) return;
  for (const auto slot : memory.slots) take_first(slot);
}

// A sum to which every worker gives its own places, and zero elsewhere.
std::vector<std::vector<std::int64_t>> WorkerSums::gather(std::span<const std::int64_t> own) {
  const auto rank = static_cast<std::size_t>(transport_->rank());
  std::vector<float> sizes(static_cast<std::size_t>(world()));
  sizes[rank] = static_cast<float>(own.size());
  sum(sizes);

  std::vector<float> words;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    for (std::size_t k = 0; k < static_cast<std::size_t>(sizes[i]); ++k) {
      put_word(i == rank ? static_cast<std::uint64_t>(own[k]) : 0, words);
    }
  }
  sum(words);

  std::vector<std::vector<std::int64_t>> all(sizes.size());
  std::span<const float> rest = words;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    for (std::size_t k = 0; k < static_cast<std::size_t>(sizes[i]); ++k) {
      all[i].push_back(static_cast<std::int64_t>(word_at(rest)));
      rest = rest.subspan(kFloatsPerWord);
    }
  }
  return all;
}

}  // namespace cohort
