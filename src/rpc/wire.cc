#include "rpc/wire.h"

#include <algorithm>
#include <new>

#include "base/fail.h"
#include "base/failpoint.h"

namespace cohort::rpc {
namespace {

/// gRPC refuses headers above 8 KiB, and makes these bytes longer by a third.
constexpr std::size_t kLongestText = 4000;

bool is_error_code(std::uint32_t code) {
  return code <= static_cast<std::uint32_t>(ErrorCode::cancelled);
}

/// For a status that gRPC itself made: the server was not reached, or is none of ours.
Error own_error_of(const grpc::Status& status, const std::string& server) {
  switch (status.error_code()) {
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return {ErrorCode::timeout, fmt::format("{} did not answer in time.", server)};
    case grpc::StatusCode::UNIMPLEMENTED:
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return {ErrorCode::unsupported,
              fmt::format("{} is not a server of this version of Cohort: {}.", server,
                          status.error_message())};
    default:
      return {ErrorCode::peer_lost,
              fmt::format("{} cannot be reached: {}.", server, status.error_message())};
  }
}

}  // namespace

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
  failpoint("rpc.before-sending");
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
  failpoint("rpc.before-receiving");
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

grpc::Status status_of(const Error& error) {
  try {
    const std::string text = error.what();
    rpc::Failure failure;
    failure.set_code(static_cast<std::uint32_t>(error.code()));
    failure.set_text(text.substr(0, kLongestText));
    if (error.rank()) failure.set_rank(*error.rank());
    return {grpc::StatusCode::FAILED_PRECONDITION, "refused", failure.SerializeAsString()};
  } catch (const std::bad_alloc&) {
    return grpc::Status::CANCELLED;
  }
}

Error error_of(const grpc::Status& status, const std::string& server) {
  rpc::Failure failure;
  const bool is_ours = status.error_code() == grpc::StatusCode::FAILED_PRECONDITION &&
                       failure.ParseFromString(status.error_details()) &&
                       is_error_code(failure.code());
  if (!is_ours) return own_error_of(status, server);
  Error error(static_cast<ErrorCode>(failure.code()), failure.text());
  if (failure.has_rank()) error.about_rank(failure.rank());
  return error;
}

}  // namespace cohort::rpc
