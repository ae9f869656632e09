// A server's desk whose process is killed while it hands out work: every piece is done exactly
// once.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>

#include "base/failpoint.h"
#include "base/random.h"
#include "server/door/server_desk.h"
#include "server/memory/lasting_memory.h"
#include "server/shard/reconcile_shards.h"
#include "server/wire/shard_shape.h"

namespace cohort::server {
namespace {

using testing::AnyOf;
using testing::Each;
using testing::IsEmpty;
using Consistency = ShardRules::Consistency;

constexpr int kWorkers = 3;
constexpr std::int64_t kSteps = 12, kParts = 4;
constexpr std::size_t kPieces = kSteps * kParts;

struct Answer : Visit {
  void answer(const ReplyHeader& given) override { reply = given; }
  void refuse(const Error& given) override { error = given; }
  std::optional<ReplyHeader> reply;
  std::optional<Error> error;
};

/// A model with a float for every piece of work, which a push of that piece adds 1 to.
ServerOptions options_of(Consistency consistency, std::span<std::byte> memory) {
  ServerOptions options;
  options.rules.workers = kWorkers;
  options.rules.consistency = consistency;
  options.rules.quorum = 2;
  options.rules.late_waits = true;
  options.rules.optimizer = {.kind = "sgd"};
  options.board = cluster::WorkBoard::Options{
      .workers = kWorkers, .left = {.parts = kParts}, .end_step = kSteps};
  options.timeout = std::chrono::seconds(30);
  options.memory = memory;
  return options;
}

/// Workers as one process, each with at most one request at the desk.
class Workers {
 public:
  Workers(ServerDesk& desk, std::uint64_t seed) : desk_(desk), random_(seed) {}

  /// Until all have ended. Now and then one dies; it is back in the next process.
  void run() {
    while (!std::ranges::all_of(workers_, [](const Worker& one) { return one.ended; })) {
      const int number = static_cast<int>(random_.below(kWorkers));
      Worker& worker = workers_[static_cast<std::size_t>(number)];
      if (worker.ended || waits(worker)) continue;
      if (living() > 1 && random_.below(30) == 0) {
        worker.ended = true;
        desk_.leave(number);
        continue;
      }
      go_on(number, worker);
    }
  }

 private:
  struct Worker {
    bool ended = false;
    bool has_pulled = false;
    std::uint64_t sequence = 0;
    std::uint64_t version = 0;
    std::vector<float> gradients = std::vector<float>(kPieces);
    std::vector<float> pulled = std::vector<float>(kPieces);
    bool has_unpushed = false;
    std::unique_ptr<Answer> answer = {};
    bool claims = false;
  };

  int living() const {
    return static_cast<int>(
        std::ranges::count_if(workers_, [](const Worker& one) { return !one.ended; }));
  }

  static bool waits(const Worker& worker) {
    return worker.answer && !worker.answer->reply && !worker.answer->error;
  }

  /// Takes in the last answer and asks for the next thing.
  void go_on(int number, Worker& worker) {
    bool end = false;
    if (worker.answer) {
      ASSERT_FALSE(worker.answer->error) << worker.answer->error->what();
      const ReplyHeader& reply = *worker.answer->reply;
      worker.version = reply.version;
      if (worker.claims && reply.claim_end) {
        end = true;
      } else if (worker.claims) {
        const auto piece = static_cast<std::size_t>(reply.claim_step * kParts + reply.claim_part);
        worker.gradients[piece] = -1;
        worker.has_unpushed = true;
      } else {
        worker.gradients.assign(kPieces, 0);
        worker.has_unpushed = false;
      }
    }
    if (end && !worker.has_unpushed) {
      worker.ended = true;
      return finish(number, worker);
    }
    // A worker may take several pieces before it pushes them all.
    send(number, worker, worker.has_unpushed && (end || random_.below(2) == 0));
  }

  void send(int number, Worker& worker, bool push) {
    Request request;
    request.header.worker = number;
    request.header.version = worker.version;
    request.header.pull = true;
    request.pull_into = worker.pulled;
    request.header.push = push;
    request.header.claim = worker.claims = !push;
    if (push) {
      request.header.lr = 1;
      request.header.sequence = ++worker.sequence;
      request.dense = worker.gradients;
    }
    worker.answer = std::make_unique<Answer>();
    desk_.take(std::move(request), *worker.answer);
  }

  void finish(int number, Worker& worker) {
    Request request;
    request.header.worker = number;
    request.header.finished = true;
    worker.answer = std::make_unique<Answer>();
    desk_.take(std::move(request), *worker.answer);
    desk_.leave(number);
  }

  ServerDesk& desk_;
  Random random_;
  std::vector<Worker> workers_ = std::vector<Worker>(kWorkers);
};

void serve(Consistency consistency, const LastingMemory& memory, std::uint64_t seed) {
  ServerDesk desk(options_of(consistency, memory.bytes()));
  if (!desk.has_model()) {
    const std::vector<float> zeros(kPieces);
    ModelMessage model;
    model.shape.dense = kPieces;
    model.floats = zeros;
    desk.initialise(model);
  }
  Workers(desk, seed).run();
}

cluster::WorkLeft work_in(const LastingMemory& memory) {
  return ShardMemory::find(memory.bytes())->work();
}

class KilledDesk : public testing::TestWithParam<Consistency> {};
INSTANTIATE_TEST_SUITE_P(Modes, KilledDesk,
                         testing::Values(Consistency::async, Consistency::quorum),
                         [](const auto& test) {
                           return test.param == Consistency::async ? "async" : "quorum";
                         });

TEST_P(KilledDesk, HandsOutEveryPieceUntilItIsDoneOnce) {
  int kills = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const ModelSize size{.dense = kPieces};
    const ServerOptions options = options_of(GetParam(), {});
    const LastingMemory memory(shard_memory_bytes(size, 1, 0, options.rules.optimizer));
    const std::span<std::byte> memories[] = {memory.bytes()};
    for (std::uint64_t life = 0; life < 100; ++life) {
      const pid_t child = ::fork();
      if (child == 0) {
        static const char* const kPoints[] = {"before-update", "in-update", "before-commit",
                                              "before-answer"};
        set_failpoints(
            fmt::format("server.{}=kill@{}", kPoints[random.below(4)], 1 + random.below(40)));
        serve(GetParam(), memory, 100 * seed + life);
        ::_exit(testing::Test::HasFailure() ? 1 : 0);
      }
      random.next();  // The child's numbers are not all the same.
      int status = 0;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      ASSERT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
      kills += WIFSIGNALED(status) ? 1 : 0;
      reconcile_shards(memories, options.rules);
      const cluster::WorkLeft left = work_in(memory);
      if (!WIFSIGNALED(status) && left.next == kPieces && left.again.empty()) break;
    }
    EXPECT_EQ(work_in(memory).next, static_cast<std::int64_t>(kPieces));
    EXPECT_THAT(work_in(memory).again, IsEmpty());
    const Shard shard(options.rules, *ShardMemory::find(memory.bytes()), nullptr);
    if (GetParam() == Consistency::async) {
      EXPECT_THAT(shard.dense(), Each(1.0F));
    } else {
      // Of an update of k pushes each counts 3/k.
      EXPECT_THAT(shard.dense(), Each(AnyOf(1.0F, 1.5F, 3.0F)));
    }
  }
  EXPECT_GT(kills, 40);
}

}  // namespace
}  // namespace cohort::server
