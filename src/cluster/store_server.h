#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "base/unique_fd.h"
#include "cluster/store.h"
#include "cluster/store_message.h"

namespace cohort {

/// Serves a store to TcpStore clients from one background thread. The constructor takes the port,
/// so that it can be told to others, also across fork(); start() begins to answer. Clients that
/// connect in between wait. The destructor stops the thread and closes all connections.
class StoreServer {
 public:
  StoreServer(const std::string& address, std::uint16_t port);
  ~StoreServer();

  /// Call at most once. Processes forked later must leave the store alone; they use a client.
  void start();

  std::uint16_t port() const;

 private:
  struct Client {
    UniqueFd socket;
    std::string incoming;
    std::string outgoing;
    std::optional<StoreMessage> waiting_get;
    bool gone = false;
  };

  void serve(std::stop_token stop);
  void accept_clients();
  void receive_from(Client& client);
  void handle(Client& client, StoreMessage request);
  std::string apply(const StoreMessage& request);
  void answer_waiting(const std::string& key);
  void remove_gone();

  UniqueFd listener_;
  UniqueFd wake_;  // An eventfd; readable when the thread shall look at its stop token.
  MemoryStore values_;
  std::list<Client> clients_;
  bool accepting_ = true;
  std::jthread thread_;  // Last, so that it ends before what it uses goes.
};

}  // namespace cohort
