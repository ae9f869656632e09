#include <cstring>

#include "base/fail.h"
#include "server/client/server_link.h"
#include "server/wire/door.h"

namespace cohort::server {
namespace {

// Half of the side memory at first; it grows when a message does not fit.
constexpr std::size_t kFirstHalf = 64 << 10;

/// Dense floats are read and written where they are; what else a request says goes through the
/// *side* memory, whose first half has the request and whose second half gets the reply. It grows
/// by a new greeting. See door.h for the order of stores.
class MemoryLink : public ServerLink {
 public:
  MemoryLink(const MemoryLinkOptions& options, Deadline deadline)
      : options_(options),
        door_memory_(options.store.take(door_key(options.server), os::SharedMemory::Pages::reserved,
                                        deadline)),
        door_(door_memory_),
        slot_(door_.slot(options.worker)),
        watch_(watch_server(options.address)),
        wait_(os::WaitPolicy::for_ranks(options.servers + static_cast<int>(door_.slots().size()),
                                        options.cores)),
        posted_(slot_.posted.load(std::memory_order_relaxed)) {
    options_.hello.floats_number = give(options.floats);
    greet(kFirstHalf, deadline);
  }

  void start(Request& request, const Timeout& timeout) override {
    message_.clear();
    write_request(message_, request);
    std::size_t row_bytes = 0;
    for (const RowsWanted& wanted : request.rows_wanted) row_bytes += wanted.values.size_bytes();
    const std::size_t needed =
        std::max(message_.size() + request.encoded.size(), kReplyBytes + row_bytes);
    if (needed > half()) greet(2 * needed, timeout.deadline());

    std::memcpy(side_.data(), message_.data(), message_.size());
    if (!request.encoded.empty()) {
      std::memcpy(side_.data() + message_.size(), request.encoded.data(), request.encoded.size());
    }
    wanted_.assign(request.rows_wanted.begin(), request.rows_wanted.end());
    slot_.request_bytes = message_.size() + request.encoded.size();
    traffic_.sent += slot_.request_bytes;
    if (request.header.push && request.encoded.empty()) {
      traffic_.sent += options_.dense * sizeof(float);
    }
    slot_.posted.store(++posted_, std::memory_order_release);
    door_.bell().notify();
  }

  Reply wait(const Timeout& timeout) override {
    const auto has_answer = [&] { return is_answered() || door_.is_closed(); };
    const auto in_time = [&] {
      return wait_.sleep_until(slot_.reply, has_answer, timeout.deadline(),
                               [&] { check_server(watch_, options_.address); });
    };
    if (!wait_.look_often(has_answer) && !in_time()) {
      fail(ErrorCode::timeout, "it did not answer in time");
    }
    // The door was closed: the server's process may live on, but not this server.
    if (!is_answered()) fail(ErrorCode::peer_lost, "it has ended");
    const std::size_t bytes = slot_.reply_bytes;  // Read once: other workers may write it again.
    if (bytes > half()) {
      fail(ErrorCode::corrupt, "its reply is longer than the memory it is in");
    }
    Reply reply = read_reply({side_.data() + half(), bytes});
    place_rows(reply, wanted_);
    traffic_.received += bytes + reply.pulled_bytes;
    reply.in_place = true;
    return reply;
  }

  Traffic traffic() const override { return traffic_; }

 private:
  bool is_answered() const { return slot_.answered.load(std::memory_order_acquire) == posted_; }
  std::size_t half() const { return side_.size() / 2; }

  std::uint64_t give(const os::SharedMemory& memory) {
    const std::uint64_t number = next_memory_number();
    options_.store.give(memory_key(options_.store, options_.worker, options_.server, number),
                        memory, 1);
    return number;
  }

  /// Tells the server which memory is this worker's.
  void greet(std::size_t half_bytes, Deadline deadline) {
    side_ = os::SharedMemory::create(2 * ((half_bytes + 63) / 64 * 64));
    options_.hello.side_number = give(side_);
    rpc::RpcClient server(options_.address.rpc, options_.store.pass(),
                          worker_member(options_.worker, options_.generation));
    greet_server(server, header_from(options_.generation, options_.worker), options_.hello,
                 deadline);
  }

  MemoryLinkOptions options_;
  os::SharedMemory door_memory_;
  Door door_;
  DoorSlot& slot_;
  os::PeerWatch watch_;
  os::SharedWait wait_;
  std::uint32_t posted_;  // A link of this worker before this one may have posted some.
  os::SharedMemory side_;
  std::vector<std::byte> message_;
  std::vector<RowsWanted> wanted_;
  Traffic traffic_;
};

}  // namespace

std::unique_ptr<ServerLink> make_memory_link(const MemoryLinkOptions& options, Deadline deadline) {
  return std::make_unique<MemoryLink>(options, deadline);
}

}  // namespace cohort::server
