#include "rpc/call_status.h"

#include <fmt/format.h>

#include "frames.pb.h"

namespace cohort {
namespace {

/// gRPC refuses headers above 8 KiB, and makes these bytes longer by a third.
constexpr std::size_t kLongestText = 4000;

bool is_error_code(std::uint32_t code) {
  return code <= static_cast<std::uint32_t>(ErrorCode::cancelled);
}

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

grpc::Status status_of(const Error& error) {
  const std::string text = error.what();
  rpc::Failure failure;
  failure.set_code(static_cast<std::uint32_t>(error.code()));
  failure.set_text(text.substr(0, kLongestText));
  if (error.rank()) failure.set_rank(*error.rank());
  return {grpc::StatusCode::FAILED_PRECONDITION, "refused", failure.SerializeAsString()};
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

}  // namespace cohort
