#include "gossip/remote_boxes.h"

#include "gossip/incoming_boxes.h"
#include "gossip/outgoing_box.h"
#include "gossip/remote_claims.h"

namespace cohort {
namespace {

std::string key_of(int rank) {
  return "gossip/address/" + std::to_string(rank);
}

class RemoteBoxes : public PeerBoxes {
 public:
  RemoteBoxes(const PeerBoxesOptions& options, Engine& engine, Store& store)
      : counter_(),
        range_{.parts = engine.world(), .end_step = options.end_step},
        incoming_(sources_of(options.topology, engine.rank(), engine.world()),
                  options.message_bytes),
        server_(engine.address().empty() ? "unix" : engine.address() + ":0",
                [this](std::unique_ptr<RpcCall> call) { handle(std::move(call)); }) {
    store.set(key_of(engine.rank()), server_.address());
    const auto deadline = Deadline::in(options.timeout);
    for (const int peer : targets_of(options.topology, engine.rank(), engine.world())) {
      outgoing_.try_emplace(peer, OutgoingBox::Options{.from = engine.rank(),
                                                       .to = peer,
                                                       .address = store.get(key_of(peer), deadline),
                                                       .message_bytes = options.message_bytes,
                                                       .timeout = options.timeout});
    }
    if (engine.rank() == 0) {
      claims_ = make_own_claims(counter_, range_);
    } else {
      claims_ = make_remote_claims(store.get(key_of(0), deadline), engine.rank(), options.timeout);
    }
  }

  bool put(int peer, const Parcel& parcel, WhenFull when) override {
    return outgoing_.at(peer).put(parcel, when);
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

  std::optional<int> lost_peer() override {
    for (auto& [peer, box] : outgoing_) {
      if (box.lost()) return peer;
    }
    return std::nullopt;
  }

  Claims& claims() override { return *claims_; }

  std::uint64_t bytes_sent() const override {
    std::uint64_t bytes = claims_->bytes_sent();
    for (const auto& [peer, box] : outgoing_) bytes += box.bytes_sent();
    return bytes;
  }

  std::uint64_t bytes_received() const override {
    std::uint64_t bytes = claims_->bytes_received() + called_bytes_.load();
    for (const auto& [peer, box] : outgoing_) bytes += box.bytes_received();
    return bytes;
  }

 private:
  // On a thread of the server.
  void handle(std::unique_ptr<RpcCall> call) {
    called_bytes_ += call->request().size();
    try {
      const RemoteHeader header = read_header(call->request());
      switch (header.kind) {
        case RemoteHeader::Kind::put:
          incoming_.put(header, call);
          break;
        case RemoteHeader::Kind::claim:
          answer_claim(*call, counter_, range_);
          break;
        case RemoteHeader::Kind::stop:
          counter_.stop();
          call->reply({});
          break;
      }
    } catch (const Error& error) {
      call->fail(error);
    }
  }

  ClaimCounter counter_;  // Used on rank 0.
  ClaimRange range_;
  std::atomic<std::uint64_t> called_bytes_ = 0;
  IncomingBoxes incoming_;
  std::map<int, OutgoingBox> outgoing_;
  std::unique_ptr<CountedClaims> claims_;
  RpcServer server_;  // Last, so that it ends before what it uses goes.
};

}  // namespace

std::unique_ptr<PeerBoxes> make_remote_boxes(const PeerBoxesOptions& options, Engine& engine,
                                             Store& store) {
  return std::make_unique<RemoteBoxes>(options, engine, store);
}

}  // namespace cohort
