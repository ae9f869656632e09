// Frames of gRPC calls. A byte says how long the next frame is; each is parsed as protobuf does it,
// and taken by a reader that allows 4 KiB. The whole is also read as the details of a status.

#include "rpc/wire.h"
#include "targets.h"

namespace cohort::fuzz {
namespace {

std::string framed(const rpc::Frame& frame) {
  const std::string bytes = frame.SerializeAsString();
  return static_cast<char>(bytes.size()) + bytes;
}

}  // namespace

void rpc_frames(Bytes input) {
  const grpc::Status status(grpc::StatusCode::FAILED_PRECONDITION, "", std::string(text_of(input)));
  (void)rpc::error_of(status, "server");
  rpc::FrameReader reader(4 << 10);
  while (!input.empty()) {
    const auto size = std::to_integer<std::size_t>(input[0]);
    const Bytes bytes = input.subspan(1, std::min(size, input.size() - 1));
    input = input.subspan(1 + bytes.size());
    rpc::Frame frame;
    if (!frame.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
    reader.take(frame);
    require(reader.message().size() <= 4 << 10, "no message is longer than is allowed");
  }
}

Seeds rpc_seeds() {
  rpc::Frame first, second, empty;
  first.set_total(5);
  first.set_data("abc");
  second.set_data("de");
  const Error error = Error(ErrorCode::timeout, "words").about_rank(3);
  return {framed(first) + framed(second), framed(empty), rpc::status_of(error).error_details()};
}

}  // namespace cohort::fuzz
