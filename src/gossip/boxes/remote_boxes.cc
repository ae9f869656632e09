#include "gossip/boxes/peer_boxes.h"
#include "gossip/boxes/remote_box.h"
#include "gossip/boxes/remote_message.h"

namespace cohort::gossip {
namespace {

std::string key_of(const cluster::Store& store, int rank) {
  return "gossip/address" + store.mark_of_rank(rank);
}

/// Threads: the worker's own calls everything public; threads of the RpcServer call handle(), which
/// touches only incoming_ and counter_, both made for it, and the count of bytes.
///
/// A peer is lost when a call to it has failed. lost_peer() therefore pings: who has nothing to
/// send would never find out otherwise. A worker hears nothing of those that only send to it.
class RemoteBoxes : public PeerBoxes, private Attendance {
 public:
  RemoteBoxes(const PeerBoxesOptions& options, transport::Engine& engine, cluster::Store& store)
      : world_(engine.world()),
        counter_memory_(ClaimCounter::bytes_needed(engine.world())),
        counter_(counter_memory_.bytes(), engine.world(), options.claims),
        incoming_(sources_of(options.topology, engine.rank(), engine.world()),
                  options.message_bytes),
        server_(
            std::in_place, engine.address().empty() ? "unix" : engine.address() + ":0",
            store.pass(), [this](std::unique_ptr<rpc::RpcCall> call) { handle(std::move(call)); },
            rpc::RpcOptions{.max_message_bytes = options.message_bytes + sizeof(RemoteHeader)}) {
    store.set(key_of(store, engine.rank()), server_->address());
    const auto deadline = options.timeout.deadline();
    for (const int peer : targets_of(options.topology, engine.rank(), engine.world())) {
      outgoing_.try_emplace(
          peer, OutgoingBox::Options{.from = engine.rank(),
                                     .to = peer,
                                     .address = store.get(key_of(store, peer), deadline),
                                     .pass = store.pass(),
                                     .message_bytes = options.message_bytes,
                                     .timeout = options.timeout.usual()});
    }
    if (engine.rank() == 0) {
      claims_ = make_counted_claims(counter_, 0);
    } else {
      claims_ = make_remote_claims({.address = store.get(key_of(store, 0), deadline),
                                    .pass = store.pass(),
                                    .rank = engine.rank(),
                                    .work = options.claims.work,
                                    .timeout = options.timeout.usual()});
    }
  }

  bool put(int peer, const Parcel& parcel, WhenFull when) override {
    return outgoing_.at(peer).put(parcel, when);
  }

  double returned() override {
    double weight = 0;
    for (auto& [peer, box] : outgoing_) weight += box.returned();
    return weight;
  }

  bool empty(int peer) override { return outgoing_.at(peer).empty(); }

  std::optional<Box::Taken> take(int peer) override {
    for (auto& [other, box] : outgoing_) box.advance();
    return incoming_.take(peer);
  }

  bool idle() override {
    bool idle = true;
    for (auto& [peer, box] : outgoing_) idle &= box.idle();
    return idle;
  }

  bool lost(int peer) override {
    const auto box = outgoing_.find(peer);
    return box != outgoing_.end() && box->second.lost();
  }

  std::optional<int> lost_peer() override {
    for (auto& [peer, box] : outgoing_) {
      box.ping();
      if (box.lost()) return peer;
    }
    return std::nullopt;
  }

  // They notice when the server is gone.
  void leave() noexcept override { server_.reset(); }

  Attendance& attendance() override { return *this; }
  Claims& claims() override { return *claims_; }

  Traffic traffic() const override {
    Traffic all = claims_->traffic();
    all.received += called_bytes_.load();
    for (const auto& [peer, box] : outgoing_) all += box.traffic();
    return all;
  }

 private:
  // On a thread of the server.
  void handle(std::unique_ptr<rpc::RpcCall> call) {
    called_bytes_ += call->request().size();
    try {
      const RemoteHeader header = read_header(call->request());
      check_caller(call->caller(), header);
      switch (header.kind) {
        case RemoteHeader::Kind::put:
          incoming_.put(header, call);
          break;
        case RemoteHeader::Kind::claim:
        case RemoteHeader::Kind::done:
        case RemoteHeader::Kind::stop:
          answer_claim(*call, counter_, header);
          break;
        case RemoteHeader::Kind::ping:
          call->reply({});
          break;
      }
    } catch (const Error& error) {
      call->fail(error);
    } catch (const std::bad_alloc&) {
      call->fail(Error(ErrorCode::no_space, "the receiver has no memory left for a parcel"));
    }
  }

  /// Nobody speaks for another.
  void check_caller(const cluster::Member& caller, const RemoteHeader& header) const {
    if (header.from < 0 || header.from >= world_) {
      fail(ErrorCode::corrupt, "there is no rank {} among {}", header.from, world_);
    }
    if (caller == member_of(header.from)) return;
    fail(ErrorCode::invalid, "{} speaks as rank {}", name_of(caller), header.from);
  }

  int world_;
  os::PrivateMemory counter_memory_;
  ClaimCounter counter_;                         // Used on rank 0.
  std::atomic<std::uint64_t> called_bytes_ = 0;  // Of all requests to the server.
  IncomingBoxes incoming_;
  std::map<int, OutgoingBox> outgoing_;  // By receiver.
  std::unique_ptr<Claims> claims_;
  std::optional<rpc::RpcServer> server_;  // Last, so that it ends before what it uses goes.
};

}  // namespace

std::unique_ptr<PeerBoxes> make_remote_boxes(const PeerBoxesOptions& options,
                                             transport::Engine& engine, cluster::Store& store) {
  return std::make_unique<RemoteBoxes>(options, engine, store);
}

}  // namespace cohort::gossip
