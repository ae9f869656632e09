#pragma once

#include <memory>
#include <string>

#include "base/deadline.h"
#include "gossip/claims.h"
#include "rpc/rpc.h"

namespace cohort {

/// Claims where the workers share no memory: rank 0 counts, the others ask it.
class CountedClaims : public Claims {
 public:
  virtual std::uint64_t bytes_sent() const = 0;
  virtual std::uint64_t bytes_received() const = 0;
};

/// Of the worker that has the counter.
std::unique_ptr<CountedClaims> make_own_claims(ClaimCounter& counter, const ClaimRange& range);

/// Of the others; `address` is that of the counter's RpcServer.
std::unique_ptr<CountedClaims> make_remote_claims(const std::string& address, int rank,
                                                  Duration timeout);

/// Answers a call that asks for a claim.
void answer_claim(RpcCall& call, ClaimCounter& counter, const ClaimRange& range);

}  // namespace cohort
