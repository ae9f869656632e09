#include "server/door/run_server.h"

#include <unistd.h>

#include <algorithm>

#include "base/fail.h"
#include "base/log.h"
#include "cluster/host_id.h"
#include "rpc/rpc.h"
#include "server/door/server_desk.h"
#include "server/door/server_doors.h"
#include "server/memory/replica_message.h"
#include "server/wire/server_address.h"

namespace cohort::server {
namespace {

// How often a server that has nothing to do looks whether somebody is gone.
constexpr auto kLookAround = std::chrono::milliseconds(100);

/// Another server that this one cannot go on without does not answer: a change could not be copied,
/// or nobody can say what a lost worker has pushed. The server ends its service, which its workers
/// notice. It has not failed: the next group has a server in its place and in that of the one that
/// is lost, and workers make again what got no answer. Not an Error: those are answers.
struct ServerLost {
  Error error;
};

/// Server 0's way to the other servers of the run, to learn what a lost worker has pushed to them.
///
/// A worker pushes to one server after the other and may be killed on the way. By gRPC another
/// server may have got the push while server 0 has not, and would have it twice if the worker's
/// pieces were handed out again. So server 0 asks before it hands them out. For the one who is
/// asked the worker has left from then on: what was sent and comes later is refused. So the answer
/// stays true.
class OtherServers {
 public:
  /// Finds them through the store when they are asked first.
  OtherServers(const ServerOptions& options, cluster::Store& store)
      : options_(options), store_(store) {}

  /// The number of the newest push of this worker that any of them has. Throws Error naming the
  /// server that does not answer.
  std::uint64_t newest_push(int worker);

 private:
  void connect();

  const ServerOptions& options_;
  cluster::Store& store_;
  std::vector<std::unique_ptr<rpc::RpcClient>> clients_;  // Of the servers 1, 2, …
};

void OtherServers::connect() {
  for (int server = 1; server < options_.servers; ++server) {
    const std::string address = store_.get(server_key(server), Deadline::in(options_.timeout));
    clients_.push_back(
        std::make_unique<rpc::RpcClient>(server_address_from(address).rpc, store_.pass(),
                                         server_member(options_.server, options_.generation)));
  }
}

std::uint64_t OtherServers::newest_push(int worker) {
  if (clients_.empty()) connect();
  rpc::Bytes question;
  write_request(question, RequestKind::lost_worker, header_from(options_.generation, worker));
  const Deadline deadline = Deadline::in(options_.timeout);
  std::vector<std::unique_ptr<rpc::RpcClient::Pending>> calls;
  for (const auto& client : clients_) {
    calls.push_back(client->start({question}, deadline, kReplyBytes));
  }
  std::uint64_t newest = 0;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    try {
      newest = std::max(newest, read_reply(calls[i]->wait()).header.newest_push);
    } catch (const Error& error) {
      throw error.with_context(
          fmt::format("parameter server {}, asked what worker {} had pushed", i + 1, worker));
    }
  }
  return newest;
}

/// A server's way to the one that keeps the copy of its shard. The shard calls it after the commit
/// of a change and before anybody is answered, on the server's one thread; so whatever a worker was
/// told is in the copy, too.
class ReplicaLink {
 public:
  /// Finds the keeper through the store.
  ReplicaLink(const ServerOptions& options, cluster::Store& store);

  /// Returns when the keeper has it. Throws Error naming the keeper.
  void send(const ShardMemory& memory, ReplicaMessage::Kind kind);

 private:
  const int keeper_;
  const Duration timeout_;
  const RequestHeader header_;  // Of no worker.
  std::unique_ptr<rpc::RpcClient> client_;
};

ReplicaLink::ReplicaLink(const ServerOptions& options, cluster::Store& store)
    : keeper_(keeper_of(options.server, options.servers)),
      timeout_(options.timeout),
      header_(header_from(options.generation, 0)) {
  const std::string address = store.get(server_key(keeper_), Deadline::in(timeout_));
  client_ = std::make_unique<rpc::RpcClient>(server_address_from(address).rpc, store.pass(),
                                             server_member(options.server, options.generation));
}

void ReplicaLink::send(const ShardMemory& memory, ReplicaMessage::Kind kind) {
  rpc::Bytes head;
  write_request(head, RequestKind::replica, header_);
  const ReplicaMessage message(memory, kind);
  rpc::MessageParts parts = message.parts();
  parts.insert(parts.begin(), head);
  try {
    client_->call(parts, Deadline::in(timeout_));
  } catch (const Error& error) {
    throw error.with_context(
        fmt::format("parameter server {}, which keeps this one's copy", keeper_));
  }
}

/// The server itself: its desk, the doors before it, and the one thread that goes between them. It
/// appears in the store when all of them are ready.
class Server {
 public:
  Server(const ServerOptions& options, cluster::Store& store)
      : options_(options),
        store_(store),
        desk_(options),
        memory_(options.rules.workers, options.server, desk_, store),
        rpc_(options, store.pass(), desk_, memory_),
        wait_(os::WaitPolicy::for_ranks(options.rules.workers + 1, options.cores)),
        appear_by_(Deadline::in(std::max(options.timeout, options.appear))) {
    store.give(door_key(options.server), memory_.memory(), cluster::kAnyTakers);
    store.set(server_key(options.server),
              to_text(ServerAddress{
                  .host = cluster::host_id(), .pid = ::getpid(), .rpc = rpc_.address()}));
  }

  cluster::ServerReport run() {
    try {
      serve();
    } catch (const ServerLost& lost) {
      log_warn("server {} ends with its group: {}", options_.server, lost.error.what());
    }
    cluster::ServerReport result;
    if (const Shard* shard = desk_.shard()) {
      result.counts = shard->counts();
      result.version = shard->version();
    }
    return result;
  }

 private:
  /// Until every worker has left, or give_up() says so.
  void serve() {
    if (options_.replicas > 1) replicate();
    while (!desk_.all_have_left()) {
      const auto has_visitors = [&] { return memory_.has_visitors() || rpc_.has_visitors(); };
      // Those who come by gRPC bring a thread that needs the core.
      if (!memory_came_ || !wait_.look_often(has_visitors)) {
        wait_.sleep_until(memory_.bell(), has_visitors, Deadline::in(kLookAround), [] {});
      }
      take_all();
      if (Clock::now() >= look_around_at_ && !look_around()) return;
    }
  }

  void take_all() {
    memory_came_ = memory_.has_visitors();
    rpc_.take_all();
    memory_.take_all();
  }

  void replicate() {
    if (options_.servers < 2 || options_.memory.empty() || options_.replica_memory.empty()) {
      fail(ErrorCode::invalid,
           "server {} shall have a copy; that needs two servers at least and lasting memory",
           options_.server);
    }
    try {
      replica_ = std::make_unique<ReplicaLink>(options_, store_);
    } catch (const Error& error) {
      throw ServerLost{error};
    }
    desk_.replicate_by([this](const ShardMemory& memory, ReplicaMessage::Kind kind) {
      try {
        replica_->send(memory, kind);
      } catch (const Error& error) {
        throw ServerLost{error};
      }
    });
  }

  /// False when the server shall end.
  bool look_around() {
    look_around_at_ = Clock::now() + kLookAround;
    for (int dead = rpc_.dead_worker(); dead >= 0; dead = rpc_.dead_worker()) {
      log_warn("server {}: worker {} is gone", options_.server, dead);
      take_all();  // What it has sent counts, as it does on other servers.
      desk_.leave(dead, work_of_lost(dead));
    }
    if (options_.give_up && options_.give_up()) return false;
    if (!appear_by_.passed()) return true;
    for (int worker = 0; worker < options_.rules.workers; ++worker) {
      if (rpc_.has_come(worker)) continue;
      fail(ErrorCode::timeout, "worker {} did not come to server {} in time", worker,
           options_.server);
    }
    return true;
  }

  /// Of a worker that no server takes anything from any more.
  LeftWork work_of_lost(int worker) {
    const bool waits_for_all = options_.rules.consistency == ShardRules::Consistency::sync;
    if (options_.servers < 2 || !desk_.hands_out_work() || waits_for_all)
      return LeftWork::handed_out;
    try {
      const bool others_have_more = others_.newest_push(worker) > desk_.newest_push(worker);
      return others_have_more ? LeftWork::done : LeftWork::handed_out;
    } catch (const Error& error) {
      // What has come of it stays. The next group finds out what becomes of its work.
      desk_.leave(worker, LeftWork::kept);
      throw ServerLost{error};
    }
  }

  ServerOptions options_;
  cluster::Store& store_;
  OtherServers others_{options_, store_};
  std::unique_ptr<ReplicaLink> replica_;
  ServerDesk desk_;
  MemoryDoor memory_;
  RpcDoor rpc_;
  os::SharedWait wait_;
  Deadline appear_by_;
  bool memory_came_ = false;  // The last visitors, or some of them, came through the memory.
  Clock::time_point look_around_at_ = Clock::now() + kLookAround;
};

}  // namespace

cluster::ServerReport run_server(const ServerOptions& options, cluster::Store& store) {
  return Server(options, store).run();
}

}  // namespace cohort::server
