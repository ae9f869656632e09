#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/deadline.h"
#include "cluster/store.h"
#include "os/peer_watch.h"
#include "rpc/rpc.h"
#include "server/wire/request.h"

namespace cohort::server {

/// How workers and servers find each other, and watch each other's process where they share a host.
///
///   server                          store                      worker, or another server
///   ServerAddress ── to_text ──► "server/<number>" ── get ──► server_address_from
///                 ◄──────────── Hello, by gRPC ─────────────  greet_server   (one host only)
///
/// Memory is handed over by the store (Store::give), in keys that both sides know: what travels here
/// is only the number of a piece.
///
///   "door/<server>"                       server → workers: where they ring
///   "memory/<worker>/<server>/<number>"   worker → server: its floats, its side memory, a model
///
/// Servers are new in every group of workers, and so are their addresses: the store's keys are of
/// one group. A worker greets every server of its host before its first request; a server that does
/// not know a worker's process cannot notice that it has died.

/// Where a server is, as it says in the store.
struct ServerAddress {
  std::string host;  ///< Its host_id().
  std::int64_t pid = 0;
  std::string rpc;  ///< Where it listens for gRPC; see RpcServer.
};
std::string to_text(const ServerAddress& address);
/// Throws Error(corrupt).
ServerAddress server_address_from(const std::string& text);

/// The store's key of a server's address; of its door's memory; of what a worker gives to it.
std::string server_key(int server);
std::string door_key(int server);
std::string memory_key(const cluster::Store& store, int worker, int server, std::uint64_t number);

/// A number that no other piece of memory of this process has; never 0, which stands for none.
std::uint64_t next_memory_number();

/// Knows, where the server is on this host, whether its process still runs; otherwise it does not.
/// Throws Error(peer_lost) where it has ended already.
os::PeerWatch watch_server(const ServerAddress& address);

/// Throws Error(peer_lost) when it has ended.
void check_server(const os::PeerWatch& watch, const ServerAddress& address);

/// What a worker of the server's host says of itself.
struct Hello {
  std::int64_t pid = 0;
  /// Outgoing floats, then incoming ones; each part 64-byte aligned. 0 where requests travel by
  /// gRPC: the server then only watches the process.
  std::uint64_t floats_number = 0;
  std::uint64_t floats = 0;
  std::uint64_t part_begin = 0;   ///< The server's part of them.
  std::uint64_t side_number = 0;  ///< The two halves: requests to, replies from this server.
};
std::string to_text(const Hello& hello);
/// Throws Error(corrupt).
Hello hello_from(std::span<const std::byte> text);

/// Tells a server of this host who the worker is. The server waits for nobody else, so it is quick.
void greet_server(rpc::RpcClient& server, const RequestHeader& from, const Hello& hello,
                  Deadline deadline);

/// As the worker or server that it is in this group, to a server's gRPC.
cluster::Member worker_member(int worker, std::int64_t generation);
cluster::Member server_member(int server, std::int64_t generation);

}  // namespace cohort::server
