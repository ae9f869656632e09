#include "server/wire/server_address.h"

#include <sstream>

#include "base/fail.h"
#include "cluster/host_id.h"
#include "rpc/rpc.h"
#include "server/wire/wire.h"

namespace cohort::server {

std::string to_text(const ServerAddress& address) {
  return fmt::format("{} {} {} {}", address.pid, address.rpc, address.door, address.host);
}

ServerAddress server_address_from(const std::string& text) {
  std::istringstream words(text);
  ServerAddress address;
  words >> address.pid >> address.rpc >> address.door;
  words.ignore();
  // The rest of the text, which may have several lines.
  std::getline(words, address.host, '\0');
  if (!words) fail(ErrorCode::corrupt, "A server's address \"{}\" cannot be read.", text);
  return address;
}

std::string server_key(int server) {
  return fmt::format("server/{}", server);
}

os::PeerWatch watch_server(const ServerAddress& address) {
  if (address.host != cluster::host_id()) return {};
  try {
    return os::PeerWatch({static_cast<pid_t>(address.pid)});
  } catch (const Error& error) {
    if (error.code() != ErrorCode::peer_lost) throw;
    fail(ErrorCode::peer_lost, "its process {} has ended", address.pid);
  }
}

void check_server(const os::PeerWatch& watch, const ServerAddress& address) {
  if (!watch.is_dead(0)) return;
  fail(ErrorCode::peer_lost, "its process {} has ended", address.pid);
}

std::string to_text(const Hello& hello) {
  if (hello.floats_path.empty()) return fmt::format("{}", hello.pid);
  return fmt::format("{} {} {} {} {}", hello.pid, hello.floats, hello.part_begin, hello.floats_path,
                     hello.side_path);
}

Hello hello_from(std::span<const std::byte> text) {
  std::istringstream words(std::string(reinterpret_cast<const char*>(text.data()), text.size()));
  Hello hello;
  words >> hello.pid;
  if (words && words.eof()) return hello;
  words >> hello.floats >> hello.part_begin >> hello.floats_path >> hello.side_path;
  if (!words) fail(ErrorCode::corrupt, "A worker's greeting cannot be read.");
  return hello;
}

void greet_server(const std::string& rpc_address, const RequestHeader& from, const Hello& hello,
                  Deadline deadline) {
  rpc::Bytes greeting;
  write_request(greeting, RequestKind::hello, from);
  const std::string text = to_text(hello);
  rpc::RpcClient client(rpc_address);
  client.call({greeting, std::as_bytes(std::span(text.data(), text.size()))}, deadline);
}

}  // namespace cohort::server
