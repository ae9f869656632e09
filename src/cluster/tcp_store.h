#pragma once

#include <cstdint>
#include <string>

#include "base/deadline.h"
#include "base/unique_fd.h"
#include "cluster/store.h"
#include "cluster/store_message.h"

namespace cohort {

/// A store that lives in a StoreServer, perhaps on another host. One thread at a time may use it.
///
/// A server that is gone is Error(peer_lost), one that stays silent Error(timeout); both name its
/// host and port.
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
  /// Sends a request and returns the value of its answer.
  std::string ask(StoreMessage request, Deadline deadline);
  void send_all(const std::string& bytes, Deadline deadline);
  StoreMessage receive_answer(const StoreMessage& request, Deadline deadline);
  StoreMessage take_message(const StoreMessage& request, Deadline deadline);
  [[noreturn]] void fail_lost(const std::string& reason) const;

  std::string server_;
  UniqueFd socket_;
  std::string received_;
  std::uint64_t last_id_ = 0;
};

}  // namespace cohort
