#include "gossip/boxes/box.h"

#include <algorithm>

#include "base/fail.h"
#include "collective/sum_kernel.h"

namespace cohort::gossip {
namespace {

std::span<float> as_floats(std::span<std::byte> bytes) {
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}

std::span<const float> as_floats(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
}

}  // namespace

std::size_t Box::bytes_needed(std::size_t capacity) {
  return sizeof(Line) + (capacity + 63) / 64 * 64;
}

Box::Box(std::span<std::byte> memory)
    : line_(reinterpret_cast<Line*>(memory.data())), room_(memory.subspan(sizeof(Line))) {}

bool Box::empty() const {
  return line_->state.load(std::memory_order_acquire) == State::empty;
}

PutResult Box::put(const Parcel& parcel, WhenFull when) {
  if (parcel.message.size() > room_.size()) {
    fail(ErrorCode::invalid, "a message of {} bytes does not fit into a box of {}",
         parcel.message.size(), room_.size());
  }
  State before = line_->state.load(std::memory_order_acquire);
  if (before == State::busy || (before == State::full && when == WhenFull::refuse)) return {};
  if (!line_->state.compare_exchange_strong(before, State::busy, std::memory_order_acquire)) {
    return {};  // The receiver was quicker.
  }
  const bool adds = before == State::full && when == WhenFull::add;
  const bool replaces = before == State::full && when == WhenFull::replace;
  const double returned = replaces ? put_ : 0;
  if (adds) {
    const std::size_t there = line_->bytes;
    if (there != parcel.message.size()) {
      line_->state.store(State::full, std::memory_order_release);
      fail(ErrorCode::invalid, "a message of {} bytes cannot be added to one of {}",
           parcel.message.size(), there);
    }
    collective::add_to(as_floats(room_.first(there)), as_floats(parcel.message));
  } else {
    std::ranges::copy(parcel.message, room_.begin());
    line_->bytes = parcel.message.size();
  }
  put_ = parcel.weight + (adds ? put_ : 0);
  line_->weight = put_;
  line_->rates = parcel.rates + (adds ? line_->rates : 0);
  line_->age = parcel.age;
  line_->state.store(State::full, std::memory_order_release);
  return {.is_there = true, .returned = returned};
}

std::optional<Box::Taken> Box::take() {
  State full = State::full;
  if (!line_->state.compare_exchange_strong(full, State::busy, std::memory_order_acquire)) {
    return std::nullopt;
  }
  const std::size_t bytes = line_->bytes;
  // A size that cannot be: a message of nothing, which cannot be read, and is left out as such.
  return Taken(line_->state, {.weight = line_->weight,
                              .message = room_.first(bytes > room_.size() ? 0 : bytes),
                              .age = line_->age,
                              .rates = line_->rates});
}

}  // namespace cohort::gossip
