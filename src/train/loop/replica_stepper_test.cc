// Passes of a model of one number, whose losses and gradients can be told beforehand: what workers
// do apart adds up to what one does alone.

#include "train/loop/replica_stepper.h"

#include <gmock/gmock.h>

#include <memory>

#include "train/loop/invented_training_test_support.h"

namespace cohort::training {
namespace {

constexpr std::int64_t kSamples = 7;

/// y = w x, whose w is 0 at first: the loss of sample i is then its target squared.
class Times : public torch::nn::Module {
 public:
  Times() { weight_ = register_parameter("weight", torch::zeros({1})); }
  torch::Tensor forward(const torch::Tensor& input) { return input * weight_; }

 private:
  torch::Tensor weight_;
};

/// One worker of so many, on seven samples whose targets are 1 … 7, in batches of 4.
class Replica {
 public:
  explicit Replica(const Job& job, int rank = 0, int world = 1)
      : job_(job),
        data_(samples()),
        strategy_({.rank = rank}, script_, table_, *model_, calls_),
        stepper_({.job = job_, .data = data_, .phases = phases_, .rank = rank, .world = world},
                 *model_, strategy_) {}

  StepWork compute(const cluster::Claim& piece) {
    const StepWork work = stepper_.compute({.piece = piece});
    strategy_.space().finish_step();
    return work;
  }
  ValidationSums evaluate(ValidationPart part) { return stepper_.evaluate(part); }
  const InventedStrategy& strategy() const { return strategy_; }
  double gradient() { return strategy_.space().memory().gradients[0]; }

 private:
  static data::LoadedData samples() {
    const torch::Tensor numbers = torch::arange(1, kSamples + 1, torch::kFloat32).unsqueeze(1);
    data::LoadedData data;
    data.train = data.validation = std::make_shared<TensorDataset>(numbers, numbers);
    return data;
  }

  Job job_;
  data::LoadedData data_;
  PhaseClock phases_;
  Script script_;
  RoundTable table_{1};
  Calls calls_;
  std::unique_ptr<Model> model_ = wrap(std::make_shared<Times>());
  InventedStrategy strategy_;
  ReplicaStepper stepper_;
};

Job squares_job() {
  Job job;
  job.train.batch = 4;
  job.train.loss = "mean-squared-error";
  return job;
}

TEST(ReplicaStepper, SharesOfTheWorkersAddUpToTheStep) {
  Replica alone(squares_job());
  Replica first(squares_job(), 0, 3);
  Replica second(squares_job(), 1, 3);
  Replica third(squares_job(), 2, 3);
  for (std::int64_t step = 0; step < 5; ++step) {  // Every other batch has three rows.
    const StepWork whole = alone.compute({.step = step});
    EXPECT_EQ(whole.rows, step % 2 == 0 ? 4 : 3);
    EXPECT_EQ(whole.global_rows, whole.rows);
    StepWork sum;
    double gradient = 0;
    for (Replica* worker : {&first, &second, &third}) {
      const StepWork own = worker->compute({.step = step});
      EXPECT_EQ(own.global_rows, whole.rows);
      EXPECT_EQ(worker->strategy().vote().loss, own.loss);
      sum.loss += own.loss;
      sum.rows += own.rows;
      gradient += worker->gradient();
    }
    EXPECT_EQ(sum.rows, whole.rows);
    EXPECT_NEAR(sum.loss, whole.loss, 1e-5);
    EXPECT_NEAR(gradient, alone.gradient(), 1e-4);
  }
}

TEST(ReplicaStepper, MicroBatchesAreOneStepWithOneVote) {
  Replica at_once(squares_job());
  Job job = squares_job();
  job.train.accumulate = 2;
  Replica in_two(job);
  const StepWork whole = at_once.compute({.step = 0});
  const StepWork parts = in_two.compute({.step = 0});
  EXPECT_EQ(in_two.strategy().votes(), 1);
  EXPECT_EQ(parts.rows, 4);
  EXPECT_NEAR(in_two.strategy().vote().loss, whole.loss, 1e-5);
  EXPECT_NEAR(in_two.gradient(), at_once.gradient(), 1e-4);
}

TEST(ReplicaStepper, MakesThePieceItIsHanded) {
  Job job = squares_job();
  job.strategy.kind = "parameter-server";
  job.strategy.consistency = "async";
  job.cluster.workers = 2;  // So many parts has a batch, however many workers there are now.
  Replica handed(job);
  Replica second(squares_job(), 1, 2);
  second.compute({.step = 0});
  second.compute({.step = 1});
  const StepWork expected = second.compute({.step = 2});
  EXPECT_EQ(handed.compute({.step = 2, .part = 1}).loss, expected.loss);
  EXPECT_EQ(handed.gradient(), second.gradient());
}

TEST(ReplicaStepper, LooksAtItsShareOfTheValidationSetOrAtAllOfIt) {
  Replica first(squares_job(), 0, 2);
  Replica second(squares_job(), 1, 2);
  const auto expect = [](const ValidationSums& sums, double loss, double samples) {
    EXPECT_NEAR(sums.loss, loss, 1e-3);
    EXPECT_EQ(sums.samples, samples);
    EXPECT_EQ(sums.predictions, 0) << "targets are no classes";
  };
  expect(first.evaluate(ValidationPart::whole_set), 1 + 4 + 9 + 16 + 25 + 36 + 49, 7);
  expect(first.evaluate(ValidationPart::own_share), 1 + 4 + 9 + 16, 4);
  expect(second.evaluate(ValidationPart::own_share), 25 + 36 + 49, 3);
}

}  // namespace
}  // namespace cohort::training
