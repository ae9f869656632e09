#include "rpc/frame_stream.h"

#include <algorithm>

#include "base/fail.h"

namespace cohort {

std::uint64_t bytes_on_wire(const rpc::Frame& frame) {
  constexpr std::uint64_t kPrefix = 5;  // gRPC's flag and length before every frame.
  return frame.ByteSizeLong() + kPrefix;
}

FrameWriter::FrameWriter(MessageParts parts, std::size_t frame_bytes)
    : parts_(std::move(parts)), frame_bytes_(frame_bytes) {
  if (frame_bytes_ == 0 || frame_bytes_ > kLargestFrame) {
    fail(ErrorCode::invalid, "Frames of {} bytes were asked for; they can have 1 to {}.",
         frame_bytes_, kLargestFrame);
  }
  for (const auto& part : parts_) total_ += part.size();
}

bool FrameWriter::fill(rpc::Frame& frame) {
  std::string& data = *frame.mutable_data();
  const auto size = std::min<std::uint64_t>(frame_bytes_, total_ - filled_);
  data.clear();
  data.reserve(size);
  frame.set_total(filled_ == 0 ? total_ : 0);
  while (data.size() < size) {
    const auto rest = parts_[part_].subspan(offset_);
    const auto piece = rest.first(std::min(rest.size(), size - data.size()));
    data.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    offset_ += piece.size();
    if (piece.size() == rest.size()) {
      ++part_;
      offset_ = 0;
    }
  }
  filled_ += size;
  return filled_ == total_;
}

void FrameReader::begin(std::uint64_t total) {
  if (total > max_message_bytes_) {
    fail(ErrorCode::invalid, "A message of {} bytes was refused; {} bytes are the most allowed.",
         total, max_message_bytes_);
  }
  started_ = true;
  total_ = total;
  message_.reserve(total);
}

void FrameReader::take(const rpc::Frame& frame) {
  const bool first = !started_;
  if (first) begin(frame.total());
  const std::string& data = frame.data();
  const bool says_nothing = data.empty() && !(first && total_ == 0);
  if (says_nothing || data.size() > total_ - message_.size()) {
    fail(ErrorCode::corrupt, "A message goes on after the {} bytes it was said to have.", total_);
  }
  const auto* bytes = reinterpret_cast<const std::byte*>(data.data());
  message_.insert(message_.end(), bytes, bytes + data.size());
}

void FrameReader::take_whole(const rpc::Frame& frame) {
  if (frame.data().size() < frame.total()) fail(ErrorCode::corrupt, "A message ends too early.");
  take(frame);
}

}  // namespace cohort
