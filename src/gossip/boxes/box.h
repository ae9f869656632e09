#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

namespace cohort::gossip {

/// What one worker sends another: a message, and what goes with it. The message is its owner's; a
/// box copies it.
struct Parcel {
  double weight = 0;  ///< Of a model in push-sum; of gradients, see Pieces::count.
  std::span<const std::byte> message;
  double age = 0;    ///< Of a model, see model_age.h.
  double rates = 0;  ///< Of gradients, see Pieces.
};

/// What becomes of a parcel that the receiver has not taken when the next one comes.
enum class WhenFull : std::uint8_t {
  replace,  ///< The newest one wins, and the weight of the other is the sender's again.
  add,      ///< Messages are floats; their sum is kept, and that of weights and rates.
  refuse,   ///< The old one stays, and put() says no.
};

/// What became of a parcel that was put.
struct PutResult {
  bool is_there = false;  ///< Otherwise the sender keeps it.
  double returned = 0;    ///< The weight of a parcel that it has replaced.

  explicit operator bool() const { return is_there; }
};

/// A place for one parcel from one sender to one receiver, in memory that both can touch; zeroed
/// memory is an empty box. Nobody ever waits at it: whoever finds the other side busy there goes
/// away again. One who dies there leaves it busy for good, which harms nobody else: the box was
/// between it and one peer alone.
///
///   EMPTY ──put──▶ BUSY (sender writes) ──▶ FULL ──take──▶ BUSY (receiver reads) ──▶ EMPTY
///                    ▲                        │
///                    └───────── put ──────────┘   replaces, or adds to, what is there
///
/// BUSY is taken by a compare-and-exchange (acquire) and left by a store (release), so whoever has
/// it owns head and message alone, and sees all that the one before has written. One thread at a
/// time on each side; both sides may be in one process.
///
/// In shared memory the other side may write whatever it likes, whenever it likes. So a size is read
/// once and checked, and what comes back of a replaced parcel is what this side has put there.
class Box {
 public:
  enum class State : std::uint32_t { empty, busy, full };
  struct Line;  ///< The head of a box in memory.

  /// A parcel that is being read where it is. The box is busy until this is destroyed, by the
  /// receiver's thread, and its memory must live until then.
  class Taken {
   public:
    Taken(std::atomic<State>& state, const Parcel& parcel) : state_(&state), parcel_(parcel) {}
    Taken(Taken&& other) noexcept
        : state_(std::exchange(other.state_, nullptr)), parcel_(other.parcel_) {}
    Taken& operator=(Taken&& other) noexcept {
      std::swap(state_, other.state_);
      std::swap(parcel_, other.parcel_);
      return *this;
    }
    ~Taken() {
      if (state_ != nullptr) state_->store(State::empty, std::memory_order_release);
    }

    double weight() const { return parcel_.weight; }
    double age() const { return parcel_.age; }
    double rates() const { return parcel_.rates; }
    std::span<const std::byte> message() const { return parcel_.message; }

   private:
    std::atomic<State>* state_;
    Parcel parcel_;
  };

  /// The memory a box for messages of at most `capacity` bytes takes, a multiple of 64.
  static std::size_t bytes_needed(std::size_t capacity);

  Box() = default;

  /// `memory` is 64-byte aligned and has bytes_needed(capacity).
  explicit Box(std::span<std::byte> memory);

  /// While it is true on the sender's side the next put() succeeds.
  bool empty() const;

  /// Copies the parcel into the box, if nobody is reading there and `when` allows it. Throws
  /// Error(invalid) for a message that does not fit, or that cannot be added to the one in the box;
  /// the box is then as before.
  PutResult put(const Parcel& parcel, WhenFull when);

  /// The parcel in the box; nothing where it is empty or the sender is just putting one. Throws
  /// Error(corrupt) for a message that is longer than the box, which is empty then.
  std::optional<Taken> take();

 private:
  Line* line_ = nullptr;
  std::span<std::byte> room_;
  double put_ = 0;  // The sender's: the weight of what it has put and that was not replaced.
};

/// A cache line of its own, with the message behind it. All but `state` belong to whoever has made
/// the box busy.
struct alignas(64) Box::Line {
  std::atomic<State> state;
  double weight;
  double age;
  double rates;
  std::uint64_t bytes;
};

}  // namespace cohort::gossip
