// A server's memory door, as a worker of its host can use it: a greeting, then, behind a newline, the
// bytes of a request in memory that both see. The greeting's numbers of memory become those of pieces
// that are there, since others are only waited for.

#include <algorithm>
#include <cstring>

#include "base/fail.h"
#include "server/door/server_doors.h"
#include "server/wire/wire.h"
#include "targets.h"

namespace cohort::fuzz {
namespace {

constexpr std::size_t kDoorDense = 20;
constexpr std::size_t kDoorFloats = 2 * server::whole_lines(kDoorDense);
constexpr std::size_t kDoorSideBytes = 16 << 10;

/// One server with a model of a few floats and rows, and the end of its worker.
class DoorServer {
 public:
  DoorServer() : desk_(options()), door_(1, 0, desk_, store_) {
    const std::vector<float> zeros(kDoorDense + 8);
    server::ModelMessage model;
    model.shape = {.dense = kDoorDense, .tables = {{.first_row = 2, .end_row = 6, .width = 2}}};
    model.floats = zeros;
    desk_.initialise(model);
  }

  void greet(server::Hello hello) {
    if (hello.floats_number != 0) hello.floats_number = give(floats_);
    hello.side_number = give(side_);
    door_.greet(0, hello);
  }

  void ask(Bytes request) {
    if (request.size() > kDoorSideBytes) return;
    server::DoorSlot& slot = server::Door(door_.memory()).slot(0);
    std::ranges::copy(request, side_.data());
    slot.request_bytes = request.size();
    slot.posted.fetch_add(1, std::memory_order_release);
    door_.take_all();
    if (slot.answered.load() != slot.posted.load()) return;
    require(slot.reply_bytes <= kDoorSideBytes / 2, "a reply has room where it stands");
    (void)server::read_reply({side_.data() + kDoorSideBytes / 2, slot.reply_bytes});
  }

 private:
  static server::ServerOptions options() {
    server::ServerOptions options;
    options.rules.workers = 1;
    options.rules.consistency = server::ShardRules::Consistency::async;
    options.rules.optimizer = {.kind = "sgd"};
    return options;
  }

  std::uint64_t give(const os::SharedMemory& memory) {
    const std::uint64_t number = server::next_memory_number();
    store_.give(server::memory_key(store_, 0, 0, number), memory, 1);
    return number;
  }

  os::SharedMemory floats_ = os::SharedMemory::create(kDoorFloats * sizeof(float));
  os::SharedMemory side_ = os::SharedMemory::create(kDoorSideBytes);
  cluster::MemoryStore store_;
  server::ServerDesk desk_;
  server::MemoryDoor door_;
};

std::string door_seed(const server::Request& request) {
  std::vector<std::byte> bytes;
  server::write_request(bytes, request);
  const server::Hello hello{
      .pid = 1, .floats_number = 1, .floats = kDoorDense, .part_begin = 0, .side_number = 2};
  return server::to_text(hello) + "\n" + std::string(text_of(bytes));
}

}  // namespace

void door(Bytes input) {
  const auto newline = std::ranges::find(input, std::byte{'\n'});
  const server::Hello hello = server::hello_from({input.begin(), newline});
  if (hello.floats_number == 0) return;
  DoorServer server;
  server.greet(hello);
  if (newline != input.end()) server.ask({newline + 1, input.end()});
}

Seeds door_seeds() {
  const std::vector<std::uint32_t> rows = {3, 5}, wanted = {2};
  const std::vector<float> values = {1, 2, 3, 4};
  std::vector<float> place(2);
  server::Request push;
  push.header.push = push.header.pull = true;
  push.header.sequence = 1;
  push.header.lr = 0.5;
  push.rows = {{.table = 0, .rows = rows, .values = values}};
  push.rows_wanted = {{.table = 0, .rows = wanted, .values = place, .width = 2}};
  server::Request pull;
  pull.header.pull = pull.header.exact = true;
  return {door_seed(push), door_seed(pull), door_seed({.kind = server::RequestKind::leave})};
}

}  // namespace cohort::fuzz
