// What a server says in the store of where it is, and where such an address leads: nowhere but into
// the run's folder, or to a host and port.

#include "base/fail.h"
#include "os/endpoint.h"
#include "server/wire/server_address.h"
#include "targets.h"

namespace cohort::fuzz {

void address(Bytes input) {
  static const cluster::Pass pass = cluster::Pass::draw();
  const server::ServerAddress found = server::server_address_from(std::string(text_of(input)));
  const server::ServerAddress again = server::server_address_from(server::to_text(found));
  require(again.pid == found.pid && again.rpc == found.rpc && again.host == found.host,
          "an address comes back as it was");
  const std::string endpoint = pass.endpoint_of(found.rpc);
  if (!os::is_unix(endpoint)) return;
  const std::string folder = os::unix_endpoint(pass.folder + "/");
  require(endpoint.starts_with(folder) && endpoint.size() > folder.size() &&
              endpoint.find('/', folder.size()) == std::string::npos &&
              endpoint[folder.size()] != '.',
          "an address leads into the folder");
}

Seeds address_seeds() {
  return {server::to_text({.host = "boot\npid:[1]net:[2]", .pid = 42, .rpc = "unix:calls-42-0"}),
          server::to_text({.host = "other", .pid = 7, .rpc = "10.0.0.1:77"})};
}

}  // namespace cohort::fuzz
