#pragma once

#include <memory>

#include "rpc/client_connection.h"
#include "rpc/rpc.h"

namespace cohort {

/// Makes a call whose two messages are small: one message goes, one comes, and gRPC tells of both
/// at once, where a stream would wake its threads for every frame and for its end. Nothing is read
/// from the parts after this returns.
std::unique_ptr<RpcClient::Pending> start_small_call(std::shared_ptr<ClientConnection> connection,
                                                     const MessageParts& parts, Deadline deadline);

}  // namespace cohort
