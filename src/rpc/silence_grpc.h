#pragma once

namespace cohort {

/// Keeps gRPC from writing to standard error: what fails reaches the caller as an Error. Call it
/// before anything else of gRPC.
void silence_grpc();

}  // namespace cohort
