#pragma once

#include <memory>
#include <string>

#include "base/deadline.h"
#include "gossip/boxes/remote_message.h"
#include "gossip/claims.h"
#include "rpc/rpc.h"

namespace cohort {

/// Claims where the workers share no memory: rank 0 counts, the others ask it.

struct RemoteClaimsOptions {
  std::string address = {};  ///< Of the counter's RpcServer.
  int rank = 0;
  WorkLeft work = {};  ///< What is handed out.
  Duration timeout = {};
};

/// Of a worker that has to ask.
std::unique_ptr<Claims> make_remote_claims(const RemoteClaimsOptions& options);

/// Answers a call that asks for a claim, or only says what is done.
void answer_claim(RpcCall& call, ClaimCounter& counter, const RemoteHeader& header);

}  // namespace cohort
