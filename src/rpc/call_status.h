#pragma once

#include <cohort/error.h>
#include <grpcpp/support/status.h>

#include <string>

namespace cohort {

/// An Error as the status of a call: what a server refuses with reaches its client whole, but for
/// the end of very long texts.
grpc::Status status_of(const Error& error);

/// The Error behind a status that is not OK. `server` names who was called.
Error error_of(const grpc::Status& status, const std::string& server);

}  // namespace cohort
