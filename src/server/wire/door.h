#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "os/memory.h"
#include "os/shared_wait.h"

namespace cohort::server {

/// A server's memory through which workers of its host ring: one bell for all, and a slot for each
/// worker. What a request says is in the worker's own memory; the slot only tells that it is there
/// and, later, that the reply is. Zeroed memory is a door nobody has rung at.
///
///   worker (MemoryLink)                         server (MemoryDoor)
///   writes request to its side memory
///   request_bytes, then ++posted (release)
///   rings the bell                        ──►   wakes, sees posted != taken (acquire)
///                                               reads the request, updates, writes the reply
///   sees answered == posted (acquire)     ◄──   reply_bytes, then answered (release), reply event
///
/// One request a worker at a time: it posts the next only when the last was answered. The two
/// halves of a slot stand on cache lines of their own, since each has one writer.

/// What one worker and the server tell each other.
struct alignas(64) DoorSlot {
  std::atomic<std::uint32_t> posted;  ///< Requests so far; written by the worker.
  std::uint64_t request_bytes;        ///< Of the last one; valid once `posted` says so.

  alignas(64) std::atomic<std::uint32_t> answered;  ///< Replies so far; written by the server.
  std::uint64_t reply_bytes;  ///< Of the last one; valid once `answered` says so.
  os::SharedEvent reply;
};

/// Where the server's thread sleeps.
struct alignas(64) DoorBell {
  os::SharedEvent event;
  std::atomic<std::uint32_t> closed;  ///< Nobody will answer any more.
};

/// The door in its memory, which must outlive it.
class Door {
 public:
  static std::size_t bytes_needed(int workers) {
    return sizeof(DoorBell) + static_cast<std::size_t>(workers) * sizeof(DoorSlot);
  }

  explicit Door(const os::SharedMemory& memory)
      : bell_(reinterpret_cast<DoorBell*>(memory.data())),
        slots_(reinterpret_cast<DoorSlot*>(memory.data() + sizeof(DoorBell)),
               (memory.size() - sizeof(DoorBell)) / sizeof(DoorSlot)) {}

  os::SharedEvent& bell() const { return bell_->event; }
  bool is_closed() const { return bell_->closed.load(std::memory_order_acquire) != 0; }
  /// By the server when it ends; whoever waits for a reply is woken.
  void close() const {
    bell_->closed.store(1, std::memory_order_release);
    for (DoorSlot& slot : slots_) slot.reply.notify();
  }
  std::span<DoorSlot> slots() const { return slots_; }
  DoorSlot& slot(int worker) const { return slots_[static_cast<std::size_t>(worker)]; }

 private:
  DoorBell* bell_;
  std::span<DoorSlot> slots_;
};

/// A worker's float memory is its outgoing floats, then its incoming ones, each from a cache line
/// on: the incoming ones begin at whole_lines(outgoing).
constexpr std::size_t kFloatsPerLine = 16;
constexpr std::size_t whole_lines(std::size_t floats) {
  return (floats + kFloatsPerLine - 1) / kFloatsPerLine * kFloatsPerLine;
}

}  // namespace cohort::server
