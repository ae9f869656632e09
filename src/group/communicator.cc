#include "group/communicator.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/fail.h"
#include "base/memory_room.h"

namespace cohort::group {
namespace {

/// For how long who serves the store stays, at most, for ranks that have not heard why the group is
/// over: they compute, and look at their next call.
constexpr auto kHearing = std::chrono::seconds(3);

/// Of a call of which ranks may give different numbers of rows.
constexpr std::size_t kRowsGiven = 0;
/// Of a split: whether there is a color, which, and the key.
constexpr std::size_t kHasColor = 0;
constexpr std::size_t kColor = 1;
constexpr std::size_t kKey = 2;
/// Of a call for memory: how much there is for it.
constexpr std::size_t kRoom = 0;

struct OwnedStore {
  std::unique_ptr<cluster::Store> store;
};

/// A part of a store that is this one's alone.
class StorePart : private OwnedStore, public cluster::PrefixStore {
 public:
  StorePart(std::unique_ptr<cluster::Store> whole, const std::string& prefix)
      : OwnedStore{std::move(whole)}, PrefixStore(*store, prefix) {}
};

/// What some of the ranks need, which all call it with the same list and the same words for where in
/// the store they meet. It keeps the whole alive.
Membership part_of(const Membership& whole, const std::vector<int>& ranks,
                   const std::string& prefix, Deadline deadline) {
  // A group's engine must go before the one it was made from.
  const auto keeps_whole = [engine = whole.engine](transport::Engine* part) { delete part; };
  const auto server = std::ranges::find(ranks, whole.store_rank);
  return {.connect = [connect = whole.connect,
                      prefix] { return std::make_unique<StorePart>(connect(), prefix); },
          .engine = {whole.engine->group(ranks, deadline).release(), keeps_whole},
          .store_rank = server == ranks.end() ? -1 : static_cast<int>(server - ranks.begin()),
          .on_failure = whole.on_failure};
}

Call call_of(Operation operation, std::span<const Array> arrays, bool any_rows = false) {
  Call call{.operation = operation};
  for (const Array& array : arrays) call.add_shape(array.shape, any_rows);
  if (!arrays.empty()) call.type = arrays.front().type;
  return call;
}

Call call_of(Operation operation, const Array& array, bool any_rows = false) {
  return call_of(operation, std::span(&array, 1), any_rows);
}

Call reducing(Call call, const Combine& combine) {
  call.how = combine.how;
  call.mean = combine.mean ? 1 : 0;
  return call;
}

Call reduction_call(std::span<const Array> arrays, const Combine& combine) {
  check_arrays(arrays);
  if (!arrays.empty()) check_combine(combine, arrays.front().type);
  return reducing(call_of(Operation::all_reduce, arrays), combine);
}

bool is_message(const Call& call) {
  return call.operation == Operation::send || call.operation == Operation::receive;
}

/// The parts that `make` has made of what all ranks give, if they are as asked for.
std::vector<Array> parts_for(const Array& given, std::span<const Call> calls,
                             const Communicator::MakeParts& make) {
  std::vector<std::int64_t> rows;
  std::vector<std::size_t> sizes;
  std::vector<std::int64_t> shape = given.shape;
  for (const Call& call : calls) {
    rows.push_back(call.values[kRowsGiven]);
    if (!shape.empty()) shape.front() = rows.back();
    sizes.push_back(bytes_of(given.type, shape));
  }
  std::vector<Array> parts = make(rows);
  const bool fit =
      std::ranges::equal(parts, sizes, {}, [](const Array& part) { return part.bytes.size(); });
  if (!fit) fail(ErrorCode::invalid, "the tensors for what the ranks give have other sizes");
  return parts;
}

std::vector<std::span<std::byte>> spans_of(std::span<const Array> arrays) {
  std::vector<std::span<std::byte>> all;
  for (const Array& array : arrays) all.push_back(array.bytes);
  return all;
}

std::int64_t room_for_arrays() {
  return static_cast<std::int64_t>(std::min<std::uint64_t>(memory_room(), INT64_MAX));
}

/// What every rank can have where all take the same.
std::uint64_t least_room(std::span<const Call> calls, std::span<const int> hosts) {
  std::int64_t least = INT64_MAX;
  for (std::size_t rank = 0; rank < calls.size(); ++rank) {
    const auto here = std::ranges::count(hosts, hosts[rank]);
    least = std::min(least, calls[rank].values[kRoom] / here);
  }
  return static_cast<std::uint64_t>(std::max<std::int64_t>(least, 0));
}

}  // namespace

Communicator::Communicator(Membership membership, const CommunicatorOptions& options)
    : membership_(std::move(membership)),
      options_(options),
      board_(membership_.connect(), rank(), world()),
      fabric_(make_fabric(membership_.engine, options_.cores, options_.timeout.deadline())),
      messages_(membership_.engine->connect(options_.timeout.deadline()), options_.timeout),
      watch_(board_, rank(), options_.patience, [this](const Error& stuck) {
        reason_after(stuck);
        leave();
      }) {}

Communicator::~Communicator() {
  {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = Error(ErrorCode::cancelled, "this rank has left the group");
  }
  leave();
}

void Communicator::barrier() {
  run({.operation = Operation::barrier},
      [this](const Call& call, Deadline deadline) { fabric_->agree(call, {}, deadline); });
}

Communicator::Body Communicator::reduction(std::vector<Array> arrays) {
  return [this, arrays = std::move(arrays)](const Call& call, Deadline deadline) {
    fabric_->all_reduce(call, arrays, deadline);
  };
}

void Communicator::all_reduce(std::vector<Array> arrays, const Combine& combine) {
  const Call call = reduction_call(arrays, combine);
  run(call, reduction(std::move(arrays)));
}

std::shared_ptr<Pending> Communicator::start_all_reduce(std::vector<Array> arrays,
                                                        const Combine& combine) {
  const Call call = reduction_call(arrays, combine);
  return start(call, reduction(std::move(arrays)));
}

Call Communicator::broadcast_call(std::span<const Array> arrays, int root) const {
  check_arrays(arrays);
  check_rank(root);
  Call call = call_of(Operation::broadcast, arrays);
  call.peer = root;
  return call;
}

Communicator::Body Communicator::broadcasting(std::vector<Array> arrays) {
  return [this, arrays = std::move(arrays)](const Call& call, Deadline deadline) {
    fabric_->agree(call, arrays, deadline);
    fabric_->broadcast(arrays, call.peer, deadline);
  };
}

void Communicator::broadcast(std::vector<Array> arrays, int root) {
  const Call call = broadcast_call(arrays, root);
  run(call, broadcasting(std::move(arrays)));
}

std::shared_ptr<Pending> Communicator::start_broadcast(std::vector<Array> arrays, int root) {
  const Call call = broadcast_call(arrays, root);
  return start(call, broadcasting(std::move(arrays)));
}

void Communicator::all_gather(const Array& given, const MakeParts& make_parts) {
  check_array(given);
  Call gather = call_of(Operation::all_gather, given, /*any_rows=*/true);
  gather.values[kRowsGiven] = given.rows();
  run(gather, [&](const Call& call, Deadline deadline) {
    const auto parts = parts_for(given, fabric_->agree(call, {}, deadline), make_parts);
    fabric_->all_gather(given.bytes, spans_of(parts), deadline);
  });
}

void Communicator::reduce_scatter(const Array& given, const Array& out, const Combine& combine) {
  check_array(given);
  check_array(out);
  check_combine(combine, out.type);
  if (given.type != out.type ||
      given.bytes.size() != out.bytes.size() * static_cast<std::size_t>(world())) {
    fail(ErrorCode::invalid, "reduce_scatter of {} elements of {} between {} ranks into {} of {}",
         given.elements().size(), name_of(given.type), world(), out.elements().size(),
         name_of(out.type));
  }
  run(reducing(call_of(Operation::reduce_scatter, out), combine),
      [&](const Call& call, Deadline deadline) {
        fabric_->agree(call, std::span(&given, 1), deadline);
        fabric_->reduce_scatter(call, given.elements(), out.elements(), deadline);
      });
}

void Communicator::all_to_all(const Array& given, const Array& taken) {
  check_array(given);
  check_array(taken);
  if (given.type != taken.type || given.shape != taken.shape || given.rows() % world() != 0) {
    fail(ErrorCode::invalid,
         "all_to_all between {} ranks needs two tensors of one type and shape, whose first "
         "dimension can be divided by {}",
         world(), world());
  }
  run(call_of(Operation::all_to_all, given), [&](const Call& call, Deadline deadline) {
    fabric_->agree(call, {}, deadline);
    fabric_->all_to_all(given.bytes, taken.bytes, deadline);
  });
}

Array Communicator::empty(collective::ElementType type, std::vector<std::int64_t> shape) {
  const std::size_t bytes = bytes_of(type, shape);
  Array array{.bytes = {}, .type = type, .shape = std::move(shape)};
  Call asked = call_of(Operation::empty, array);
  asked.values[kRoom] = room_for_arrays();
  std::optional<Memory> memory;
  run(asked, [&](const Call& call, Deadline deadline) {
    const auto calls = fabric_->agree(call, {}, deadline);
    memory = fabric_->empty(bytes, least_room(calls, membership_.engine->hosts()), deadline);
  });
  if (!memory) {
    fail(ErrorCode::no_space, "there is no room for an array of {} MiB on every rank", bytes >> 20);
  }
  array.bytes = memory->bytes;
  array.hold = std::move(memory->hold);
  return array;
}

void Communicator::send(const Array& array, int peer) {
  wait(*start_send(array, peer));
}

void Communicator::receive(const Array& array, int peer) {
  wait(*start_receive(array, peer));
}

std::shared_ptr<Pending> Communicator::start_send(const Array& array, int peer) {
  return start_message(Operation::send, array, peer);
}

std::shared_ptr<Pending> Communicator::start_receive(const Array& array, int peer) {
  return start_message(Operation::receive, array, peer);
}

std::shared_ptr<Communicator> Communicator::split(std::optional<int> color, int key) {
  Call asked{.operation = Operation::split};
  asked.values[kHasColor] = color ? 1 : 0;
  asked.values[kColor] = color.value_or(0);
  asked.values[kKey] = key;
  std::shared_ptr<Communicator> part;
  run(asked, [&](const Call& call, Deadline deadline) {
    const auto calls = fabric_->agree(call, {}, deadline);
    if (!color) return;
    const auto where = fmt::format("split/{}/{}/", call.number, *color);
    part = std::make_shared<Communicator>(part_of(membership_, members_of(calls), where, deadline),
                                          options_);
  });
  return part;
}

/// Those of this rank's color, in their order.
std::vector<int> Communicator::members_of(std::span<const Call> calls) const {
  const Call& own = calls[static_cast<std::size_t>(rank())];
  std::vector<int> members;
  for (int other = 0; other < world(); ++other) {
    const Call& theirs = calls[static_cast<std::size_t>(other)];
    const bool same = theirs.values[kColor] == own.values[kColor];
    if (theirs.values[kHasColor] != 0 && same) members.push_back(other);
  }
  std::ranges::stable_sort(members, {}, [&](int member) {
    return calls[static_cast<std::size_t>(member)].values[kKey];
  });
  return members;
}

std::shared_ptr<Pending> Communicator::start_message(Operation operation, const Array& array,
                                                     int peer) {
  check_array(array);
  check_rank(peer);
  if (peer == rank()) fail(ErrorCode::invalid, "rank {} has no messages for itself", peer);
  check_usable();
  Call call = call_of(operation, array);
  call.peer = peer;
  watch_.count(call);
  std::shared_ptr<Pending> message;
  guarded(call, [&] { message = messages_.start(call, array); });
  return message;
}

void Communicator::run(Call call, const Body& body) {
  check_usable();
  watch_.count(call);
  const WaitWatch::Waiting waiting(watch_, call);
  if (queue_.idle()) return make(call, body);
  queue_.start(call, [&] { make(call, body); })->wait(std::nullopt);
}

std::shared_ptr<Pending> Communicator::start(Call call, Body body) {
  check_usable();
  watch_.count(call);
  return queue_.start(call, [this, call, body = std::move(body)] { make(call, body); });
}

void Communicator::make(const Call& call, const Body& body) {
  guarded(call, [&] { body(call, options_.timeout.deadline()); });
}

// Who waits with a deadline of its own goes on after it, so it is not one of those who may be stuck.
// A collective ends the group where it is made; a message is made by who waits for it.
void Communicator::wait(Pending& pending, std::optional<Deadline> deadline) {
  std::optional<WaitWatch::Waiting> waiting;
  if (!deadline) waiting.emplace(watch_, pending.call());
  if (!is_message(pending.call())) return pending.wait(deadline);
  guarded(pending.call(), [&] { pending.wait(deadline); });
}

void Communicator::check_rank(int rank) const {
  if (rank >= 0 && rank < world()) return;
  fail(ErrorCode::invalid, "there is no rank {} in a group of {}", rank, world());
}

void Communicator::check_usable() const {
  const std::lock_guard lock(mutex_);
  if (failure_) throw *failure_;
}

void Communicator::guarded(const Call& call, const std::function<void()>& body) {
  check_usable();
  try {
    body();
  } catch (const Error& error) {
    end_with(error, call);
  } catch (const std::bad_alloc&) {
    end_with(Error(ErrorCode::no_space, "there is no memory for it"), call);
  } catch (const std::exception& error) {
    end_with(Error(ErrorCode::io, error.what()), call);
  }
}

Error Communicator::end(const Error& reason) {
  Error told = reason.with_context(fmt::format("rank {} ended the group", rank()));
  if (!told.rank()) told.about_rank(rank());
  return end_for(told);
}

// What is wrong between ranks says who called what already.
void Communicator::end_with(const Error& error, const Call& call) {
  throw end_for(error.code() == ErrorCode::invalid
                    ? error
                    : error.with_context(fmt::format("rank {} in {}", rank(), describe(call))));
}

/// Returns why the group is over.
Error Communicator::end_for(const Error& error) {
  const Error reason = reason_after(error);
  leave();
  if (membership_.store_rank == rank()) std::call_once(heard_, [&] { let_others_hear(reason); });
  return reason;
}

// Nobody catches it in most programs, so this process ends at once, and the store with it.
void Communicator::let_others_hear(const Error& reason) {
  const bool lost = reason.code() == ErrorCode::peer_lost && reason.rank() != rank();
  board_.wait_until_heard(world() - (lost ? 1 : 0), Deadline::in(kHearing));
}

/// Why the group is over: what was told first. A rank that goes because of it tells it before it
/// goes, so whoever misses that rank finds the reason.
Error Communicator::reason_after(const Error& error) {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = board_.failure();
  if (!failure_) {
    board_.tell_failure(error);
    failure_ = board_.failure();
  }
  if (!failure_) failure_ = as_seen_without_board(error);
  if (membership_.on_failure) membership_.on_failure();
  return *failure_;
}

/// Where the board is gone, so is the rank that serves it. It is the reason for which others leave
/// then, whoever of them was missed here.
Error Communicator::as_seen_without_board(const Error& error) {
  const int server = membership_.store_rank;
  const bool is_loss = error.code() == ErrorCode::peer_lost && error.rank() != server;
  if (!is_loss || server < 0 || server == rank() || !board_.is_lost()) return error;
  return Error(error.code(), fmt::format("{}: rank {} is gone, and with it the group's store",
                                         error.what(), server))
      .about_rank(server);
}

// Whoever comes second waits too: after it nothing moves to or from users' memory any more.
void Communicator::leave() noexcept {
  const std::lock_guard lock(leaving_);
  fabric_->abandon();
  messages_.abandon();
}

}  // namespace cohort::group
