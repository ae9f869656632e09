// A server's desk that hands out very much work before any of it comes back.

#include <gmock/gmock.h>

#include <optional>

#include "base/failpoint.h"
#include "server/door/server_desk.h"
#include "server/memory/lasting_memory.h"
#include "server/wire/shard_shape.h"

namespace cohort::server {
namespace {

constexpr int kWorkers = 4;
// Sanitizers take their time for every one.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr std::int64_t kPieces = 1 << 16;
#else
constexpr std::int64_t kPieces = 1 << 20;
#endif

struct Answer : Visit {
  void answer(const ReplyHeader& given) override { reply = given; }
  void refuse(const Error& given) override { ADD_FAILURE() << given.what(); }
  std::optional<ReplyHeader> reply;
};

ServerOptions options_in(std::span<std::byte> memory) {
  ServerOptions options;
  options.rules.workers = kWorkers;
  options.rules.consistency = ShardRules::Consistency::async;
  options.rules.optimizer = {.kind = "sgd"};
  options.board = cluster::WorkBoard::Options{
      .workers = kWorkers, .left = {.parts = kWorkers}, .end_step = kPieces};
  options.memory = memory;
  return options;
}

cluster::Claim claim(ServerDesk& desk, int worker) {
  Request request;
  request.header.worker = worker;
  request.header.claim = true;
  Answer answer;
  desk.take(std::move(request), answer);
  return {.step = answer.reply.value().claim_step,
          .part = static_cast<int>(answer.reply->claim_part)};
}

void push(ServerDesk& desk, int worker) {
  const std::vector<float> gradients(1);
  Request request;
  request.header.worker = worker;
  request.header.push = true;
  request.header.sequence = 1;
  request.header.lr = 1;
  request.dense = gradients;
  Answer answer;
  desk.take(std::move(request), answer);
  ASSERT_TRUE(answer.reply);
}

TEST(DeskWork, AMillionPiecesAreHandedOutWithoutACommitAndLast) {
  const LastingMemory memory(shard_memory_bytes({.dense = 1}, 1, 0, {.kind = "sgd"}));
  {
    ServerDesk desk(options_in(memory.bytes()));
    const std::vector<float> zero(1);
    ModelMessage model;
    model.shape.dense = 1;
    model.floats = zero;
    desk.initialise(model);
    set_failpoints("server.before-commit=error");  // A commit would write down all that is left.
    for (std::int64_t piece = 0; piece < kPieces; ++piece) {
      const int worker = static_cast<int>(piece % kWorkers);
      ASSERT_EQ(claim(desk, worker), (cluster::Claim{piece / kWorkers, worker}));
    }
    set_failpoints("");
    const cluster::WorkLeft noted = ShardMemory::find(memory.bytes())->work();
    EXPECT_EQ(noted.next, kPieces);
    EXPECT_EQ(noted.again.size(), std::size_t{kPieces});
    push(desk, 1);
  }
  const cluster::WorkLeft left = ShardMemory::find(memory.bytes())->work();
  EXPECT_EQ(left.next, kPieces);
  EXPECT_EQ(left.again.size(), std::size_t{kPieces / 4 * 3});
  ServerDesk next(options_in(memory.bytes()));  // Of the process that takes over.
  for (const cluster::Claim expected :
       {cluster::Claim{0, 0}, cluster::Claim{0, 2}, cluster::Claim{0, 3}, cluster::Claim{1, 0}}) {
    EXPECT_EQ(claim(next, 0), expected);
  }
}

}  // namespace
}  // namespace cohort::server
