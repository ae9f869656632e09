#pragma once

namespace cohort {

/// Keeps gRPC's callback threads from the first call of this to the end of the process. Without
/// it they end with the last channel or server and start with the next, and gRPC 1.51 aborts now
/// and then when a process does so several times.
void hold_grpc_callbacks();

}  // namespace cohort
