#include "meet/rendezvous.h"

#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "base/fail.h"
#include "base/integers.h"
#include "os/tcp_socket.h"

namespace cohort::meet {
namespace {

// torchrun's agent holds the master port with a store of its own kind. It only passes on the port
// of ours: rank 0 gives its `own_port`, the others (0) get it.
std::uint16_t port_through_agent(const cluster::LaunchEnvironment& environment,
                                 std::uint16_t own_port, Deadline deadline) {
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

/// The run's store on one host, in the folder of the run.
constexpr const char* kStoreAddress = "unix:store";

}  // namespace

Rendezvous::Rendezvous(const std::optional<cluster::LaunchEnvironment>& environment)
    : environment_(environment),
      pass_(environment ? cluster::pass_of(*environment) : cluster::Pass::draw()) {
  if (!environment) {
    server_.emplace(pass_);
  } else if (environment->rank == 0 && environment->one_host) {
    server_.emplace(pass_.endpoint_of(kStoreAddress), pass_);
  } else if (environment->rank == 0) {
    const auto port =
        static_cast<std::uint16_t>(environment->agent_store ? 0 : environment->master_port);
    server_.emplace(os::host_and_port(environment->master_host, port), pass_);
  }
}

void Rendezvous::serve() {
  if (server_) server_->start();
}

std::string Rendezvous::endpoint(Deadline deadline) const {
  if (!environment_) return server_->endpoint();
  if (environment_->one_host) return pass_.endpoint_of(kStoreAddress);
  const std::string& host = environment_->master_host;
  std::uint16_t port = static_cast<std::uint16_t>(environment_->master_port);
  if (environment_->agent_store) {
    const std::string mine = server_ ? server_->endpoint() : "";
    const auto own_port = parse_integer(mine.substr(mine.rfind(':') + 1), 1, 65535).value_or(0);
    port = port_through_agent(*environment_, static_cast<std::uint16_t>(own_port), deadline);
  }
  return os::host_and_port(host, port);
}

std::unique_ptr<cluster::SocketStore> Rendezvous::connect(const cluster::Member& self,
                                                          Deadline deadline) const {
  return std::make_unique<cluster::SocketStore>(endpoint(deadline), pass_, deadline, self);
}

}  // namespace cohort::meet
