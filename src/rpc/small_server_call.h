#pragma once

#include <grpcpp/support/server_callback.h>

#include "frames.pb.h"
#include "rpc/rpc.h"

namespace cohort {

/// The server's end of a call whose two messages are one frame each. The frames are gRPC's until
/// the call is over; so may be what this returns.
grpc::ServerUnaryReactor* begin_small_call(const rpc::Frame& request, rpc::Frame& reply,
                                           const RpcServer::Handler& handler,
                                           const RpcOptions& options);

}  // namespace cohort
