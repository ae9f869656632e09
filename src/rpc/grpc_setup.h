#pragma once

namespace cohort::rpc {

/// Makes gRPC fit for use in this process. To be called before anything else of gRPC; every server
/// and client calls it, and again costs nothing.
///
/// - gRPC writes nothing to standard error: what fails reaches the caller as an Error.
/// - Its callback threads are kept from now to the end of the process. Otherwise they end with the
///   last channel or server and start with the next, and gRPC 1.51 aborts now and then when a
///   process does so several times.
///
/// Before the first call of this a process has no thread of gRPC and may fork(); afterwards it must
/// not. Any thread may call it.
///
/// Its source also tells ThreadSanitizer which of its reports about gRPC are false.
void prepare_grpc();

}  // namespace cohort::rpc
