#include "rpc/hold_callbacks.h"

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include "frames.grpc.pb.h"

namespace cohort {

void hold_grpc_callbacks() {
  // A server that listens nowhere counts as a user of the threads. It is never ended: at the end of
  // a process there is no good moment for it. Marked as used because otherwise no pointer to it
  // would be kept, and leak checkers complain.
  [[gnu::used]] static const grpc::Server* const holder = [] {
    static auto* service = new rpc::Frames::CallbackService;
    grpc::ServerBuilder builder;
    builder.RegisterService(service);
    return builder.BuildAndStart().release();
  }();
}

}  // namespace cohort
