#include "server/door/memory_door.h"

#include <algorithm>

#include "base/fail.h"

namespace cohort {

/// One worker of this host. Its request is answered before it makes the next, so it is its own
/// visit.
class MemoryDoor::Guest : public Visit {
 public:
  Guest(DoorSlot& slot, ServerDesk& desk) : slot_(slot), desk_(desk) {}

  void greet(const Hello& hello) {
    if (floats_path_ != hello.floats_path) {
      put_aside(floats_);
      floats_ = SharedMemory::attach(hello.floats_path);
      floats_path_ = hello.floats_path;
    }
    put_aside(side_);
    side_ = SharedMemory::attach(hello.side_path);
    if (hello.floats > floats_.size() / sizeof(float) ||
        floats_.size() < 2 * whole_lines(hello.floats) * sizeof(float) ||
        hello.part_begin > hello.floats || side_.size() < 2 * kReplyBytes) {
      fail(ErrorCode::corrupt, "a worker's memory is smaller than it says");
    }
    auto* floats = reinterpret_cast<float*>(floats_.data());
    outgoing_ = std::span(floats, hello.floats).subspan(hello.part_begin);
    incoming_ =
        std::span(floats + whole_lines(hello.floats), hello.floats).subspan(hello.part_begin);
  }

  bool is_waiting() const { return slot_.posted.load(std::memory_order_acquire) != taken_; }
  bool can_be_taken() const { return is_waiting() && (desk_.has_model() || !needs_model()); }

  void take() {
    ++taken_;
    try {
      take_request();
    } catch (const Error& error) {
      refuse(error);
    }
  }

  void answer(const ReplyHeader& reply) override {
    const std::uint64_t pulled = !pulls_             ? 0
                                 : !encoded_.empty() ? encoded_.size()
                                                     : desk_.shape().dense * sizeof(float);
    begin_reply(reply_half(), reply, pulled, row_floats_);
    send(kReplyHeadBytes + row_floats_ * sizeof(float));
  }

  void refuse(const Error& error) override { send(write_error(reply_half(), error)); }

 private:
  std::span<std::byte> reply_half() const {
    return std::span(side_.data(), side_.size()).subspan(side_.size() / 2);
  }

  /// A request that waits refers to it until it is answered.
  void put_aside(SharedMemory& memory) {
    if (slot_.answered.load(std::memory_order_relaxed) != taken_) {
      aside_.push_back(std::move(memory));
    }
  }

  WireRequest next_request() const {
    if (slot_.request_bytes > side_.size() / 2) {
      fail(ErrorCode::corrupt, "a request is longer than the memory it is in");
    }
    return read_request({side_.data(), slot_.request_bytes});
  }

  /// What cannot be read needs none to be refused.
  bool needs_model() const {
    try {
      return next_request().kind != WireKind::leave;
    } catch (const Error&) {
      return false;
    }
  }

  void take_request() {
    WireRequest wire = next_request();
    pulls_ = wire.header.pull;
    row_floats_ = 0;
    encoded_.clear();
    desk_.check_epoch(wire.header);
    if (wire.kind == WireKind::leave) {
      desk_.leave(wire.header.worker, wire.header.returns ? LeftWork::kept : LeftWork::handed_out);
      return answer({});
    }
    desk_.take(request_of(wire), *this);
  }

  Request request_of(WireRequest& wire) {
    const std::size_t dense = desk_.shape().dense;
    if (dense > outgoing_.size()) fail(ErrorCode::corrupt, "a worker's model is too small");
    place_rows(wire);
    const RequestHeader& header = wire.header;
    const bool plain = wire.rest.empty();
    return {.header = header,
            .dense = outgoing_.first(header.push && plain ? dense : 0),
            .encoded = header.push ? wire.rest : std::span<const std::byte>(),
            .rows = std::move(wire.rows),
            .pieces = std::move(wire.pieces),
            .pull_into = incoming_.first(header.pull ? dense : 0),
            .pull_encoded = header.pull && !header.exact && compressed_ ? &encoded_ : nullptr,
            .rows_wanted = std::move(wire.wanted),
            .answer = {},
            .refuse = {}};
  }

  /// Wanted rows go where the reply will be, behind its header.
  void place_rows(WireRequest& wire) {
    row_floats_ = wanted_floats(wire);
    if (row_floats_ > (reply_half().size() - kReplyHeadBytes) / sizeof(float)) {
      fail(ErrorCode::corrupt, "a worker wants more rows than its memory can take");
    }
    auto* next = reinterpret_cast<float*>(reply_half().data() + kReplyHeadBytes);
    for (std::size_t i = 0; i < wire.wanted.size(); ++i) {
      const std::size_t count = wire.wanted[i].rows.size() * wire.wanted_widths[i];
      wire.wanted[i].values = {next, count};
      next += count;
    }
  }

  void send(std::size_t bytes) {
    slot_.reply_bytes = bytes;
    slot_.answered.store(taken_, std::memory_order_release);
    slot_.reply.notify();
    aside_.clear();
  }

  DoorSlot& slot_;
  ServerDesk& desk_;
  std::string floats_path_;
  SharedMemory floats_;
  SharedMemory side_;
  std::vector<SharedMemory> aside_;
  std::span<float> outgoing_;
  std::span<float> incoming_;
  std::uint32_t taken_ = 0;
  bool pulls_ = false;
  bool compressed_ = desk_.compresses();
  std::size_t row_floats_ = 0;
  std::vector<std::byte> encoded_;
};

MemoryDoor::MemoryDoor(int workers, ServerDesk& desk)
    : memory_(SharedMemory::create(Door::bytes_needed(workers))),
      door_(memory_),
      desk_(desk),
      guests_(static_cast<std::size_t>(workers)) {}

MemoryDoor::~MemoryDoor() {
  door_.close();
}

void MemoryDoor::greet(int worker, const Hello& hello) {
  if (worker < 0 || static_cast<std::size_t>(worker) >= guests_.size()) {
    fail(ErrorCode::invalid, "worker {} says hello; the workers are 0 to {}", worker,
         guests_.size() - 1);
  }
  auto& guest = guests_[static_cast<std::size_t>(worker)];
  if (!guest) guest = std::make_unique<Guest>(door_.slot(worker), desk_);
  guest->greet(hello);
}

bool MemoryDoor::has_visitors() const {
  return std::ranges::any_of(guests_,
                             [](const auto& guest) { return guest && guest->can_be_taken(); });
}

void MemoryDoor::take_all() {
  for (const auto& guest : guests_) {
    if (guest && guest->can_be_taken()) guest->take();
  }
}

}  // namespace cohort
