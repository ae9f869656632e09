#pragma once

#include <cstddef>
#include <cstdint>

#include "frames.pb.h"
#include "rpc/rpc.h"

namespace cohort {

/// The largest frame_bytes: gRPC is told to refuse longer frames.
inline constexpr std::size_t kLargestFrame = 64 << 20;

/// What a frame takes on the connection, as far as it is gRPC's to say.
std::uint64_t bytes_on_wire(const rpc::Frame& frame);

/// Cuts a message into frames. The parts must stay unchanged until the last frame is filled.
class FrameWriter {
 public:
  /// Throws Error(invalid) for a frame size that receivers would refuse.
  FrameWriter(MessageParts parts, std::size_t frame_bytes);

  /// Of the whole message.
  std::uint64_t total() const { return total_; }

  /// Makes `frame` the next one; true when it is the last. A message has at least one frame.
  bool fill(rpc::Frame& frame);

 private:
  MessageParts parts_;
  std::size_t frame_bytes_;
  std::size_t part_ = 0;    // The next byte to send is in this part
  std::size_t offset_ = 0;  // at this place.
  std::uint64_t total_ = 0;
  std::uint64_t filled_ = 0;
};

/// Puts a message together from its frames.
class FrameReader {
 public:
  explicit FrameReader(std::size_t max_message_bytes) : max_message_bytes_(max_message_bytes) {}

  /// Throws Error(invalid) for a message above the limit, before any memory is taken for it, and
  /// Error(corrupt) for a stream that is longer than it said.
  void take(const rpc::Frame& frame);
  /// The same of a frame that must be the whole message.
  void take_whole(const rpc::Frame& frame);

  /// Whether the whole message is there.
  bool complete() const { return started_ && message_.size() == total_; }
  Bytes& message() { return message_; }
  const Bytes& message() const { return message_; }

 private:
  void begin(std::uint64_t total);

  std::size_t max_message_bytes_;
  bool started_ = false;
  std::uint64_t total_ = 0;
  Bytes message_;
};

}  // namespace cohort
