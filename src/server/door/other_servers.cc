#include "server/door/other_servers.h"

#include <algorithm>

#include "base/fail.h"
#include "server/client/server_link.h"
#include "server/wire/wire.h"

namespace cohort {

void OtherServers::connect() {
  for (int server = 1; server < options_.servers; ++server) {
    const std::string address = store_.get(server_key(server), Deadline::in(options_.timeout));
    clients_.push_back(std::make_unique<RpcClient>(server_address_from(address).rpc));
  }
}

std::uint64_t OtherServers::newest_push(int worker) {
  if (clients_.empty()) connect();
  WireHead head{.kind = WireKind::lost_worker};
  head.header.epoch = options_.epoch;
  head.header.worker = worker;
  Bytes question;
  write_request(question, head, {}, {});
  const Deadline deadline = Deadline::in(options_.timeout);
  std::vector<std::unique_ptr<RpcClient::Pending>> calls;
  for (const auto& client : clients_) {
    calls.push_back(client->start({question}, deadline, kReplyBytes));
  }
  std::uint64_t newest = 0;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    try {
      newest = std::max(newest, read_reply(calls[i]->wait()).header.newest_push);
    } catch (const Error& error) {
      throw error.with_context(
          fmt::format("parameter server {}, asked what worker {} had pushed", i + 1, worker));
    }
  }
  return newest;
}

}  // namespace cohort
