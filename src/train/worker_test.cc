// A worker that leaves while its group is being formed: two threads with real sessions, and a seat
// that knows of no further group.

#include "train/worker.h"

#include <gmock/gmock.h>

#include <thread>

#include "base/failpoint.h"
#include "data/load_data.h"
#include "launch/seat.h"
#include "train/train_test_support.h"
#include "transport/inproc/inproc.h"

namespace cohort::training {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

constexpr int kWorkers = 2;

/// A place in the second group of a run, after which there is none.
class LaterSeat : public launch::Seat {
 public:
  LaterSeat(std::unique_ptr<transport::Engine> engine, const launch::ControlBlock& control,
            cluster::Store& store)
      : worker_(engine->rank()), engine_(std::move(engine)), control_(control), store_(store) {}

  int worker() const override { return worker_; }
  cluster::View first() override { return {.generation = 2, .workers = {0, 1}}; }
  bool has_next() const override { return true; }
  cluster::View next(std::int64_t after, std::int64_t) override {
    return {.generation = after + 1};
  }
  Group join(const cluster::View& view, Deadline) override {
    return {.store = launch::group_store(store_, control_, view), .engine = std::move(engine_)};
  }

 private:
  int worker_;
  std::unique_ptr<transport::Engine> engine_;
  const launch::ControlBlock& control_;
  cluster::Store& store_;
};

// A pause may have been asked for meanwhile, so that the launcher takes its leaving for that.
TEST(Worker, ThatLeavesWhileItsGroupFormsKeepsNobodyWaiting) {
  Job job = small_digits_job({.preset = "mlp"});
  job.cluster.workers = kWorkers;
  const data::LoadedData data = data::load_data(job.data, job.seed);
  launch::ControlBlock control(kWorkers, 0);
  const WorkerRun run{.job = job, .data = data, .control = control, .run_dir = {}};
  transport::InprocHub hub(kWorkers);
  cluster::MemoryStore store;
  set_failpoints("worker.rendezvous=no-space");  // Of whoever comes first.
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < kWorkers; ++rank) {
      threads.emplace_back([&, rank] {
        LaterSeat seat(hub.engine(rank), control, store);
        run_worker(run, seat, [] { ADD_FAILURE() << current_error().what(); });
      });
    }
  }
  set_failpoints("");
  EXPECT_THAT(
      (std::vector<std::string>{control.card(0).error.data(), control.card(1).error.data()}),
      UnorderedElementsAre(HasSubstr("worker.rendezvous"),
                           HasSubstr("a task was lost while others waited")));
}

}  // namespace
}  // namespace cohort::training
