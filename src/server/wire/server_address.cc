#include "server/wire/server_address.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <sstream>

#include "base/fail.h"
#include "cluster/host_id.h"
#include "rpc/rpc.h"
#include "server/wire/wire.h"

namespace cohort::server {
namespace {

bool is_process(std::int64_t pid) {
  return pid > 0 && pid <= std::numeric_limits<pid_t>::max();
}

}  // namespace

std::string to_text(const ServerAddress& address) {
  return fmt::format("{} {} {}", address.pid, address.rpc, address.host);
}

ServerAddress server_address_from(const std::string& text) {
  std::istringstream words(text);
  ServerAddress address;
  words >> address.pid >> address.rpc;
  words.ignore();
  // The rest of the text, which may have several lines.
  std::getline(words, address.host, '\0');
  if (!words || !is_process(address.pid)) {
    fail(ErrorCode::corrupt, "A server's address \"{}\" cannot be read.", excerpt(text));
  }
  return address;
}

std::string server_key(int server) {
  return "server" + cluster::mark_of(server_member(server, 0));
}

std::string door_key(int server) {
  return "door" + cluster::mark_of(server_member(server, 0));
}

std::string memory_key(const cluster::Store& store, int worker, int server, std::uint64_t number) {
  return fmt::format("memory/{}/{}{}", server, number, store.mark_of_rank(worker));
}

std::uint64_t next_memory_number() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

cluster::Member worker_member(int worker, std::int64_t generation) {
  return {cluster::Member::Role::worker, worker, generation};
}

cluster::Member server_member(int server, std::int64_t generation) {
  return {cluster::Member::Role::server, server, generation};
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
  if (hello.floats_number == 0) return fmt::format("{}", hello.pid);
  return fmt::format("{} {} {} {} {}", hello.pid, hello.floats, hello.part_begin,
                     hello.floats_number, hello.side_number);
}

// One number, or all five. They are read as signed ones, since a stream takes "-1" for the largest
// of the others.
Hello hello_from(std::span<const std::byte> text) {
  std::istringstream words(std::string(reinterpret_cast<const char*>(text.data()), text.size()));
  std::array<std::int64_t, 5> numbers{};
  std::size_t count = 0;
  while (count < numbers.size() && words >> numbers[count]) ++count;
  const bool whole = words.eof() && (count == 1 || count == numbers.size());
  if (!whole || !is_process(numbers[0]) || std::ranges::min(numbers) < 0) {
    fail(ErrorCode::corrupt, "A worker's greeting cannot be read.");
  }
  return {.pid = numbers[0],
          .floats_number = static_cast<std::uint64_t>(numbers[3]),
          .floats = static_cast<std::uint64_t>(numbers[1]),
          .part_begin = static_cast<std::uint64_t>(numbers[2]),
          .side_number = static_cast<std::uint64_t>(numbers[4])};
}

void greet_server(rpc::RpcClient& server, const RequestHeader& from, const Hello& hello,
                  Deadline deadline) {
  rpc::Bytes greeting;
  write_request(greeting, RequestKind::hello, from);
  const std::string text = to_text(hello);
  server.call({greeting, std::as_bytes(std::span(text.data(), text.size()))}, deadline);
}

}  // namespace cohort::server
