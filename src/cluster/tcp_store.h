#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "base/deadline.h"
#include "base/unique_fd.h"
#include "cluster/store.h"

namespace cohort::cluster {

/// A store for other processes and hosts: one process, the launcher or rank 0, has a StoreServer,
/// all have a TcpStore. In one connection requests and answers follow each other:
///
///   TcpStore                                       StoreServer
///   set "0/addr" = "10.0.0.1"   -- set     -->
///                               <-- done   --
///   get "1/addr"                -- get     -->     nobody has set it: the answer waits
///                                                  … another client sets it …
///                               <-- done   --      "10.0.0.2"
///
/// A client has one request under way. A get() that gives up at its deadline tells the server
/// nothing: its next request, with the next id, does, and an answer that comes late is recognised
/// by its old id and dropped. So a timeout of get() leaves the connection usable; one while a
/// request is being sent does not, since half of a request cannot be taken back.
///
/// What the server refuses (adding to a text) is an answer. A client whose bytes cannot be
/// messages, or that asks on and on without reading, is dropped, with a line in the log. Nothing is
/// encrypted and nobody has to say who they are: the port is for the hosts of the run.
///
/// On the wire a message is a header and two texts, all numbers little-endian:
///
///   0      4      8              16        20          24
///   | magic| kind |     id       | key size| value size| key … | value …
///   | u32  | u32  |     u64      | u32     | u32       |
///
/// magic is "CHS1"; keys have at most 4 KiB and values at most 1 MiB, so that nobody can make
/// another one take memory without end.
struct StoreMessage {
  enum class Kind : std::uint32_t {
    set,       ///< key, value → done
    get,       ///< key → done with the value, as soon as there is one
    add,       ///< key, value = the amount in decimal → done with the sum
    done,      ///< value
    refused,   ///< value = why
    set_once,  ///< key, value → done with the value that stands
  };

  Kind kind = Kind::done;
  std::uint64_t id = 0;  ///< Chosen by the client; an answer repeats its request's.
  std::string key;
  std::string value;

  bool operator==(const StoreMessage&) const = default;
};

inline constexpr std::size_t kMaxStoreKey = 4 << 10;
inline constexpr std::size_t kMaxStoreValue = 1 << 20;

/// Throws Error(invalid) when the key or the value is too large.
std::string encode_store_message(const StoreMessage& message);

/// Takes the first message off the front of `bytes`; nothing while it is incomplete. Throws
/// Error(corrupt) as soon as the bytes cannot be a message.
std::optional<StoreMessage> decode_store_message(std::string& bytes);

/// Serves a store to TcpStore clients from one background thread. The constructor takes the port,
/// so that it can be told to others, also across fork(); start() begins to answer. Clients that
/// connect in between wait. The destructor stops the thread and closes all connections; the values
/// are gone with it.
class StoreServer {
 public:
  StoreServer(const std::string& address, std::uint16_t port);
  ~StoreServer();

  /// Call at most once. Processes forked later must leave the store alone; they use a client.
  void start();

  std::uint16_t port() const;

 private:
  /// A connection, as the thread sees it.
  struct Client {
    UniqueFd socket;
    std::string incoming;                     ///< Bytes that are not a whole request yet.
    std::string outgoing;                     ///< Answers that the socket has not taken yet.
    std::optional<StoreMessage> waiting_get;  ///< Unanswered, because nobody has set its key yet.
    bool gone = false;                        ///< Removed at the end of this round.
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
  std::list<Client> clients_;  // This and what follows is the thread's alone, once it runs.
  bool accepting_ = true;      // Off while there is no room for one more client.
  std::jthread thread_;        // Last, so that it ends before what it uses goes.
};

/// A store that lives in a StoreServer, perhaps on another host. One thread at a time may use it.
///
/// A server that is gone is Error(peer_lost), one that stays silent Error(timeout); both name its
/// host and port. All but get() are answered at once, and give up after 30 s.
class TcpStore : public Store {
 public:
  /// Tries to connect until the deadline, because the server may start later.
  TcpStore(const std::string& host, std::uint16_t port, Deadline connect);

  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key, Deadline deadline) override;
  std::int64_t add(const std::string& key, std::int64_t amount) override;
  std::string set_once(const std::string& key, const std::string& value) override;

  /// This host's address on the connection to the server: one that other hosts can reach.
  std::string local_address() const;

 private:
  /// Sends a request and returns the value of its answer. Throws what was refused as
  /// Error(invalid).
  std::string ask(StoreMessage request, Deadline deadline);
  void send_all(const std::string& bytes, Deadline deadline);
  StoreMessage receive_answer(const StoreMessage& request, Deadline deadline);
  StoreMessage take_message(const StoreMessage& request, Deadline deadline);
  [[noreturn]] void fail_lost(const std::string& reason) const;

  std::string server_;         // host:port, for errors.
  UniqueFd socket_;            // Shut down once half a request was sent in vain.
  std::string received_;       // Bytes that are not a whole message yet.
  std::uint64_t last_id_ = 0;  // Of the last request.
};

}  // namespace cohort::cluster
