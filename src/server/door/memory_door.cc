#include "server/door/server_doors.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "base/fail.h"

namespace cohort::server {
namespace {

using TakeMemory = std::function<os::SharedMemory(std::uint64_t number)>;

}  // namespace

/// One worker of this host. Its request is answered before it makes the next, so it is its own
/// visit.
class MemoryDoor::Guest : public Visit {
 public:
  Guest(int worker, DoorSlot& slot, ServerDesk& desk, TakeMemory take)
      : worker_(worker), slot_(slot), desk_(desk), take_memory_(std::move(take)) {}

  /// Sizes are checked against what was mapped, since they come from another process.
  void greet(const Hello& hello) {
    const bool brings_floats = floats_number_ != hello.floats_number;
    os::SharedMemory fresh;
    if (brings_floats) fresh = take_memory_(hello.floats_number);
    os::SharedMemory side = take_memory_(hello.side_number);
    const std::size_t bytes = brings_floats ? fresh.size() : floats_.size();
    if (hello.floats > bytes / sizeof(float) ||
        bytes < 2 * whole_lines(hello.floats) * sizeof(float) || hello.part_begin > hello.floats ||
        side.size() < 2 * kReplyBytes) {
      fail(ErrorCode::corrupt, "a worker's memory is smaller than it says");
    }
    // From here on nothing fails: a greeting that is refused leaves all as it was.
    if (brings_floats) {
      put_aside(floats_);
      floats_ = std::move(fresh);
      floats_number_ = hello.floats_number;
    }
    put_aside(side_);
    side_ = std::move(side);
    auto* floats = reinterpret_cast<float*>(floats_.data());
    outgoing_ = std::span(floats, hello.floats).subspan(hello.part_begin);
    incoming_ =
        std::span(floats + whole_lines(hello.floats), hello.floats).subspan(hello.part_begin);
  }

  bool is_waiting() const { return slot_.posted.load(std::memory_order_acquire) != taken_; }
  bool can_be_taken() const { return is_waiting() && (desk_.has_model() || !needs_model()); }

  /// What is refused for want of memory was not at the desk: there it ends the server, since nobody
  /// knows what was done already.
  void take() {
    ++taken_;
    std::optional<Request> request;
    try {
      request = next_for_desk();
    } catch (const Error& error) {
      send(write_error(reply_half(), error));
    } catch (const std::bad_alloc&) {
      send(write_error(reply_half(), no_memory()));
    }
    if (!request) return;
    if (leaves(*request)) return leave(*request);
    const int before = at_desk_++;
    try {
      desk_.take(std::move(*request), *this);
    } catch (const Error& error) {
      if (at_desk_ > before) refuse(error);
    }
  }

  void answer(const ReplyHeader& reply) override {
    leave_desk();
    const std::uint64_t pulled = !pulls_             ? 0
                                 : !encoded_.empty() ? encoded_.size()
                                                     : desk_.shape().dense * sizeof(float);
    begin_reply(reply_half(), reply, pulled, row_floats_);
    send(kReplyHeadBytes + row_floats_ * sizeof(float));
  }

  void refuse(const Error& error) override {
    leave_desk();
    send(write_error(reply_half(), error));
  }

 private:
  std::span<std::byte> reply_half() const {
    return std::span(side_.data(), side_.size()).subspan(side_.size() / 2);
  }

  /// A request at the desk refers to it until it is answered. What the slot says of that counts for
  /// nothing, as other workers can write it.
  void put_aside(os::SharedMemory& memory) {
    if (at_desk_ > 0) aside_.push_back(std::move(memory));
  }

  void leave_desk() {
    if (at_desk_ > 0 && --at_desk_ == 0) aside_.clear();
  }

  Request next_request() const {
    const std::size_t bytes = slot_.request_bytes;  // Read once: the worker may write it again.
    if (bytes > side_.size() / 2) {
      fail(ErrorCode::corrupt, "a request is longer than the memory it is in");
    }
    return read_request({side_.data(), bytes});
  }

  /// What cannot be read needs none to be refused.
  bool needs_model() const {
    try {
      return !leaves(next_request());
    } catch (const Error&) {
      return false;
    }
  }

  static bool leaves(const Request& request) {
    return request.kind == RequestKind::leave || request.kind == RequestKind::step_out;
  }

  void leave(const Request& request) {
    try {
      desk_.leave(worker_, work_left_by(request.kind));
    } catch (const Error& error) {
      return send(write_error(reply_half(), error));
    }
    begin_reply(reply_half(), {}, 0, 0);
    send(kReplyHeadBytes);
  }

  /// The next request, with all that the desk needs to know of it.
  Request next_for_desk() {
    Request request = next_request();
    const RequestHeader& header = request.header;
    pulls_ = header.pull;
    row_floats_ = 0;
    encoded_.clear();
    if (header.worker != worker_) {
      fail(ErrorCode::invalid, "worker {} speaks as worker {}", worker_, header.worker);
    }
    desk_.check_generation(header);
    if (!leaves(request)) complete(request);
    return request;
  }

  /// Says where the floats are, in the worker's memory. Messages of a codec stand behind the
  /// request.
  void complete(Request& request) {
    const std::size_t dense = desk_.shape().dense;
    if (dense > outgoing_.size()) fail(ErrorCode::corrupt, "a worker's model is too small");
    place_rows(request);
    if (request.header.push) {
      request.encoded = request.rest;
      if (request.rest.empty()) request.dense = outgoing_.first(dense);
    }
    if (request.header.pull) {
      request.pull_into = incoming_.first(dense);
      if (!request.header.exact && compressed_) request.pull_encoded = &encoded_;
    }
    keep_what_is_checked(request);
  }

  /// Numbers of rows and messages of codecs are looked at before memory is read and written by them,
  /// and may be used much later, with another round. Until then the worker could write others. So
  /// they are copied before the first look.
  static void keep_what_is_checked(Request& request) {
    std::size_t rows = 0;
    for (const RowsPushed& block : request.rows) rows += block.rows.size();
    for (const RowsWanted& block : request.rows_wanted) rows += block.rows.size();
    request.kept_rows.reserve(rows);  // Where they stand from here on.
    const auto keep = [&](std::span<const std::uint32_t>& numbers) {
      const std::size_t begin = request.kept_rows.size();
      request.kept_rows.insert(request.kept_rows.end(), numbers.begin(), numbers.end());
      numbers = std::span(request.kept_rows).subspan(begin);
    };
    for (RowsPushed& block : request.rows) keep(block.rows);
    for (RowsWanted& block : request.rows_wanted) keep(block.rows);
    request.kept_message.assign(request.encoded.begin(), request.encoded.end());
    request.encoded = request.kept_message;
  }

  /// Wanted rows go where the reply will be, behind its header.
  void place_rows(Request& request) {
    row_floats_ = wanted_floats(request);
    if (row_floats_ > (reply_half().size() - kReplyHeadBytes) / sizeof(float)) {
      fail(ErrorCode::corrupt, "a worker wants more rows than its memory can take");
    }
    auto* next = reinterpret_cast<float*>(reply_half().data() + kReplyHeadBytes);
    for (RowsWanted& block : request.rows_wanted) {
      block.values = {next, block.rows.size() * block.width};
      next += block.values.size();
    }
  }

  void send(std::size_t bytes) {
    slot_.reply_bytes = bytes;
    slot_.answered.store(taken_, std::memory_order_release);
    slot_.reply.notify();
  }

  const int worker_;
  DoorSlot& slot_;
  ServerDesk& desk_;
  const TakeMemory take_memory_;
  std::uint64_t floats_number_ = 0;
  os::SharedMemory floats_;
  os::SharedMemory side_;
  std::vector<os::SharedMemory> aside_;  // Mapped until nothing of it is at the desk.
  int at_desk_ = 0;                      // Requests that are not answered.
  std::span<float> outgoing_;
  std::span<float> incoming_;
  std::uint32_t taken_ = 0;
  bool pulls_ = false;
  bool compressed_ = desk_.compresses();
  std::size_t row_floats_ = 0;
  std::vector<std::byte> encoded_;
};

MemoryDoor::MemoryDoor(int workers, int server, ServerDesk& desk, cluster::Store& store)
    : memory_(os::SharedMemory::create(Door::bytes_needed(workers))),
      door_(memory_),
      desk_(desk),
      server_(server),
      store_(store),
      guests_(static_cast<std::size_t>(workers)) {}

// What a worker speaks of it has given before, and the store has said so to it. Nobody is waited
// for: others want to be served.
os::SharedMemory MemoryDoor::take_memory(int worker, std::uint64_t number) {
  return store_.take(memory_key(store_, worker, server_, number), os::SharedMemory::Pages::reserved,
                     Deadline::in(Duration::zero()));
}

MemoryDoor::~MemoryDoor() {
  door_.close();
}

void MemoryDoor::greet(int worker, const Hello& hello) {
  if (worker < 0 || static_cast<std::size_t>(worker) >= guests_.size()) {
    fail(ErrorCode::invalid, "worker {} says hello; the workers are 0 to {}", worker,
         guests_.size() - 1);
  }
  auto& guest = guests_[static_cast<std::size_t>(worker)];
  if (!guest) {
    guest = std::make_unique<Guest>(
        worker, door_.slot(worker), desk_,
        [this, worker](std::uint64_t number) { return take_memory(worker, number); });
  }
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

}  // namespace cohort::server
