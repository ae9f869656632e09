#include "server/door/replica_link.h"

#include "base/fail.h"
#include "server/client/server_link.h"
#include "server/wire/wire.h"

namespace cohort {

ReplicaLink::ReplicaLink(const ServerOptions& options, Store& store)
    : keeper_(keeper_of(options.server, options.servers)), timeout_(options.timeout) {
  header_.epoch = options.epoch;
  const std::string address = store.get(server_key(keeper_), Deadline::in(timeout_));
  client_ = std::make_unique<RpcClient>(server_address_from(address).rpc);
}

void ReplicaLink::send(const ShardMemory& memory, ReplicaMessage::Kind kind) {
  Bytes head;
  write_request(head, {.kind = WireKind::replica, .header = header_}, {}, {});
  const ReplicaMessage message(memory, kind);
  MessageParts parts = message.parts();
  parts.insert(parts.begin(), head);
  try {
    client_->call(parts, Deadline::in(timeout_));
  } catch (const Error& error) {
    throw error.with_context(
        fmt::format("parameter server {}, which keeps this one's copy", keeper_));
  }
}

}  // namespace cohort
