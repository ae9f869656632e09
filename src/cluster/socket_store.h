#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/deadline.h"
#include "base/unique_fd.h"
#include "cluster/doorkeeper.h"
#include "cluster/store.h"

namespace cohort::cluster {

/// A store for other processes and hosts: one process, the launcher or rank 0, has a StoreServer,
/// all have a SocketStore. Who connects proves first that it knows the run's secret
/// (cluster/handshake.h); then requests and answers follow each other:
///
///   SocketStore                                    StoreServer
///   set "0/addr" = "10.0.0.1"   -- set     -->
///                               <-- done   --
///   get "1/addr"                -- get     -->     nobody has set it: the answer waits
///                                                  … another client sets it …
///                               <-- done   --      "10.0.0.2"
///   give "region/0"             -- give, a descriptor -->
///   take "region/1"             -- take    -->     nobody has given it: the answer waits
///                               <-- handed, a descriptor --
///   take "region/2" at once     -- take_now -->    nobody has given it
///                               <-- done   --
///
/// Descriptors travel beside the bytes, which a unix socket alone can do: memory is handed over
/// between processes of one host, by the kernel, and never named.
///
/// A client has one request under way. A get() that gives up at its deadline tells the server
/// nothing: its next request, with the next id, does, and an answer that comes late is recognised
/// by its old id and dropped. Memory that comes late for a take() is kept for the next take() of
/// its key, since the server hands it over once. So a timeout of either leaves the connection
/// usable; one while a request is being sent does not, since half of a request cannot be taken back.
///
/// What the server refuses (adding to a text, a key with the mark of another) is an answer. A client whose bytes cannot be
/// messages, or that asks on and on without reading, is dropped, with a line in the log. What a
/// client has given and nobody has taken is let go of when its connection ends, or when it has given
/// many more pieces since. Nothing is encrypted.
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
    give,      ///< key, value = bytes and takers in decimal, a descriptor → done
    take,      ///< key → handed, as soon as it was given
    handed,    ///< value = its bytes in decimal, a descriptor
    take_now,  ///< key → handed, or done where nobody has given it
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

/// Serves a store to SocketStore clients from one background thread. The constructor takes the
/// endpoint, so that it can be told to others, also across fork(); start() begins to answer.
/// Clients that connect in between wait. The destructor stops the thread and closes all
/// connections; the values are gone with it.
class StoreServer {
 public:
  /// In the pass's folder, for the tasks of this host.
  explicit StoreServer(const Pass& pass);
  /// At "host:port"; port 0 lets the kernel pick.
  StoreServer(const std::string& endpoint, const Pass& pass);
  ~StoreServer();

  /// Call at most once. Processes forked later must leave the store alone; they use a client.
  void start();

  /// What a SocketStore is given.
  const std::string& endpoint() const { return door_.endpoint(); }
  const Pass& pass() const { return pass_; }

 private:
  /// Bytes to be sent, and a descriptor that goes with the first of them.
  struct Outgoing {
    std::string bytes;
    UniqueFd descriptor = {};
  };

  /// A connection, as the thread sees it.
  struct Client {
    UniqueFd socket;
    Member member = {};
    std::string incoming = {};                 ///< Bytes that are not a whole request yet.
    std::vector<UniqueFd> descriptors = {};    ///< That came with them, in order.
    std::deque<Outgoing> outgoing = {};        ///< Answers that the socket has not taken yet.
    std::size_t unread = 0;                    ///< Bytes of them.
    std::optional<StoreMessage> waiting = {};  ///< A get or take that cannot be answered yet.
    std::deque<std::string> gave = {};         ///< Keys of memory, the oldest first.
    bool gone = false;                         ///< Removed at the end of this round.
  };

  void serve(std::stop_token stop);
  void serve_round(std::vector<pollfd>& sockets);
  void receive_from(Client& client);
  static void drop(Client& client, const char* why);
  void handle(Client& client, StoreMessage request);
  std::string apply(Client& client, const StoreMessage& request);
  void take_given(Client& client, const StoreMessage& request);
  void answer(Client& client, const StoreMessage& message, UniqueFd descriptor = {});
  void answer_waiting(const std::string& key);
  bool answer_now(Client& client);
  bool find_answer(Client& client);
  static bool send_some(Client& client);
  void remove_gone();

  const Pass pass_;
  Doorkeeper door_;
  UniqueFd wake_;  // An eventfd; readable when the thread shall look at its stop token.
  MemoryStore values_;
  std::list<Client> clients_;  // The thread's alone, once it runs.
  std::jthread thread_;        // Last, so that it ends before what it uses goes.
};

/// A store that lives in a StoreServer, perhaps on another host. One thread at a time may use it.
///
/// A server that is gone is Error(peer_lost), one that stays silent Error(timeout); both name where
/// it is. All but get() and take() are answered at once, and give up after 30 s; so does a take() of
/// what must be there already, whose deadline has passed.
class SocketStore : public Store {
 public:
  /// Tries to connect until the deadline, because the server may start later. `self` is who this
  /// process is in the run: it writes no key with the mark of another.
  SocketStore(const std::string& endpoint, const Pass& pass, Deadline connect, const Member& self);

  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key, Deadline deadline) override;
  std::int64_t add(const std::string& key, std::int64_t amount) override;
  std::string set_once(const std::string& key, const std::string& value) override;
  void give(const std::string& key, const os::SharedMemory& memory, int takers) override;
  os::SharedMemory take(const std::string& key, os::SharedMemory::Pages pages,
                        Deadline deadline) override;
  const Pass& pass() override { return pass_; }

  /// This host's address on the connection to the server: one that other hosts can reach. Empty
  /// where the server is on this host.
  std::string local_address() const;

 private:
  struct Received {
    StoreMessage message;
    UniqueFd descriptor;  // Where it is `handed`.
  };

  /// Sends a request and returns its answer. Throws what was refused as Error(invalid).
  Received ask(StoreMessage request, Deadline deadline, int descriptor = -1);
  /// As ask(), of a take that may go on where an earlier one of the same key gave up.
  Received ask_for_memory(const std::string& key, Deadline deadline);
  Received ask_for_memory_now(const std::string& key);
  void send_all(std::string bytes, int descriptor, Deadline deadline);
  Received receive_answer(const StoreMessage& request, Deadline deadline);
  Received take_message(const StoreMessage& request, Deadline deadline);
  void check_same_host() const;
  [[noreturn]] void fail_lost(const std::string& reason) const;

  const std::string server_;  // Where it is, for errors too.
  const Pass pass_;
  UniqueFd socket_;                    // Shut down once half a request was sent in vain.
  std::string received_;               // Bytes that are not a whole message yet.
  std::vector<UniqueFd> descriptors_;  // That came with them, in order.
  std::uint64_t last_id_ = 0;          // Of the last request.
  // Memory is handed over once. What comes for a take() that gave up is kept for the next of its key.
  std::map<std::uint64_t, std::string> given_up_;  // The keys of such takes, by their ids.
  std::map<std::string, Received> late_;           // What came for them.
};

}  // namespace cohort::cluster
