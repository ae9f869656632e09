#pragma once

#include <cohort/error.h>
#include <grpcpp/support/status.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "frames.pb.h"
#include "rpc/rpc.h"

namespace cohort::rpc {

/// What a call is on the connection. Its messages travel as frames (frames.proto), each a gRPC
/// message of its own; a call that is refused ends with a status that has an Error in it.
///
///   message of 2.5 MiB, frames of 1 MiB:   | total = 2.5 Mi, data 1 Mi | data 1 Mi | data 0.5 Mi |
///   empty message:                         | total = 0, no data |
///   small call, either way:                | total, data |
///
/// A receiver believes nothing: a total above its limit is refused before memory is taken for it,
/// and so is a stream that goes on after its total, or that ends before it.

/// The largest frame_bytes: gRPC is told to refuse longer frames.
inline constexpr std::size_t kLargestFrame = 64 << 20;

/// What a frame takes on the connection, without what HTTP/2 adds.
std::uint64_t bytes_on_wire(const rpc::Frame& frame);

/// Cuts a message into frames. It copies from the parts when a frame is filled, so they must stay
/// unchanged until the last one is. One thread at a time.
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
  std::uint64_t filled_ = 0;  // Bytes in frames so far.
};

/// Puts a message together from its frames. One thread at a time; after a call that threw it is of
/// no use any more.
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
  bool started_ = false;     // The first frame was taken.
  std::uint64_t total_ = 0;  // As it said.
  Bytes message_;            // What has come so far.
};

/// An Error as the status of a call: what a server refuses with reaches its client whole, but for
/// the end of very long texts. Without memory for it, a status that says nothing: it does not throw.
grpc::Status status_of(const Error& error);

/// The Error behind a status that is not OK. `server` names who was called.
Error error_of(const grpc::Status& status, const std::string& server);

}  // namespace cohort::rpc
