#include "train/run/rendezvous.h"

#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "base/fail.h"
#include "base/parse_integer.h"

namespace cohort {
namespace {

// torchrun's agent holds the master port with a store of its own kind. It only passes on the port
// of ours: rank 0 gives its `own_port`, the others (0) get it.
std::uint16_t port_through_agent(const LaunchEnvironment& environment, std::uint16_t own_port,
                                 Deadline deadline) {
  const std::string key = "cohort/" + environment.incarnation + "/port";
  try {
    c10d::TCPStoreOptions options;
    options.port = static_cast<std::uint16_t>(environment.master_port);
    options.isServer = false;
    options.waitWorkers = false;
    options.timeout = std::chrono::duration_cast<std::chrono::milliseconds>(deadline.remaining());
    c10d::TCPStore agent(environment.master_host, options);
    if (own_port != 0) {
      const std::string text = std::to_string(own_port);
      agent.set(key, std::vector<std::uint8_t>(text.begin(), text.end()));
      return own_port;
    }
    const std::vector<std::uint8_t> text = agent.get(key);
    const auto port = parse_integer(std::string(text.begin(), text.end()), 1, 65535);
    if (!port) fail(ErrorCode::corrupt, "what it has under {} is no port", key);
    return static_cast<std::uint16_t>(*port);
  } catch (const std::exception& error) {
    fail(ErrorCode::timeout, "torchrun's store at {}:{} did not tell where rank 0 is: {}",
         environment.master_host, environment.master_port, error.what());
  }
}

}  // namespace

Rendezvous::Rendezvous(const std::optional<LaunchEnvironment>& environment)
    : environment_(environment), host_(environment ? environment->master_host : "127.0.0.1") {
  if (environment && environment->rank != 0) return;
  const bool given = environment && !environment->agent_store;
  server_.emplace(host_, given ? static_cast<std::uint16_t>(environment->master_port) : 0);
}

void Rendezvous::serve() {
  if (server_) server_->start();
}

std::unique_ptr<TcpStore> Rendezvous::connect(Deadline deadline) const {
  std::uint16_t port = server_ ? server_->port() : 0;
  if (environment_ && environment_->agent_store) {
    port = port_through_agent(*environment_, port, deadline);
  } else if (!server_) {
    port = static_cast<std::uint16_t>(environment_->master_port);
  }
  return std::make_unique<TcpStore>(host_, port, deadline);
}

}  // namespace cohort
