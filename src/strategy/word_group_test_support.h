#pragma once

#include <cohort/error.h>
#include <signal.h>
#include <torch/torch.h>
#include <unistd.h>

#include <memory>
#include <vector>

#include "base/random.h"
#include "cluster/work_board.h"
#include "model/functions/functions.h"
#include "strategy/strategy.h"
#include "tensor/table_rows.h"

namespace cohort::strategy {

/// For tests with servers: a small net over words, and one worker of a group that trains it. Who
/// runs the workers, as threads or as processes, is the test's business.

/// A small regression over words. Between its two matrices stands a table, which servers of
/// gradients keep apart; no size is a multiple of the padding. The buffer follows the parameters,
/// so that it is the same on workers whose parameters are.
struct WordNet : torch::nn::Module {
  static constexpr std::int64_t kWords = 40;
  static constexpr std::int64_t kContext = 3;
  static constexpr std::int64_t kWidth = 5;

  explicit WordNet(int stream) {
    hidden = register_parameter("hidden", random({kContext * kWidth, 7}, stream));
    words = register_parameter("words", random({kWords, kWidth}, stream + 1));
    out = register_parameter("out", random({7, 1}, stream + 2));
    seen = register_buffer("seen", torch::zeros({3}));
    mark = std::make_unique<tensor::TableMark>(words);
  }

  torch::Tensor forward(const torch::Tensor& ids) {
    if (is_training()) {
      const torch::NoGradGuard no_gradients;
      seen.mul_(0.75).add_(hidden.sum());
    }
    const auto rows = model::apply_embedding(ids, words).view({ids.size(0), kContext * kWidth});
    return torch::matmul(torch::tanh(torch::matmul(rows, hidden)), out);
  }

  static torch::Tensor random(std::vector<std::int64_t> shape, int stream) {
    Random numbers(5, static_cast<std::uint64_t>(stream));
    torch::Tensor values = torch::zeros(shape);
    auto* data = values.data_ptr<float>();
    for (std::int64_t i = 0; i < values.numel(); ++i) {
      data[i] = static_cast<float>(numbers.uniform(-0.5, 0.5));
    }
    return values;
  }

  torch::Tensor hidden, words, out, seen;
  std::unique_ptr<tensor::TableMark> mark;
};

/// The same for everybody: the rows of any part of any step's batch.
struct WordData {
  static constexpr std::int64_t kRows = 96;
  static constexpr std::int64_t kBatch = 24;

  WordData() {
    Random numbers(9);
    auto* data = ids.data_ptr<std::int64_t>();
    for (std::int64_t i = 0; i < ids.numel(); ++i) {
      data[i] = static_cast<std::int64_t>(numbers.below(WordNet::kWords));
    }
    target = torch::tanh(ids.to(torch::kFloat32).sum(1, true) / 60 - 1);
  }

  static torch::Tensor rows(const torch::Tensor& of, const cluster::Claim& claim,
                            std::int64_t parts) {
    const std::int64_t size = kBatch / parts;
    const std::int64_t begin = claim.step * kBatch % kRows + claim.part * size;
    return of.slice(0, begin, begin + size);
  }

  torch::Tensor ids = torch::zeros({kRows, WordNet::kContext}, torch::kInt64);
  torch::Tensor target;
};

/// A job of the small net; 60 steps.
inline Job word_job(const StrategyOptions& strategy, int workers, int servers) {
  Job job;
  job.strategy = strategy;
  job.train.steps = 60;
  job.train.optimizer = {.kind = "sgd", .lr = 0.05, .momentum = 0.5};
  job.cluster.workers = workers;
  job.cluster.servers = servers;
  job.cluster.timeout_seconds = 60;
  return job;
}

/// A group of workers that trains until a step, or where work is handed
/// out until its chief wants to stop.
struct GroupRun {
  Job job;
  int workers = 1;
  std::int64_t generation = 1;
  std::int64_t until = 1;  ///< A step; handed out: the chief's own steps.
  std::vector<const tensor::TrainingState*> starts = {};  ///< By rank; null or missing: nothing.
  bool meets = false;                                     ///< At the end, before its chief saves.
  int dying = -1;                                         ///< A rank that is gone
  std::int64_t dies_after = 0;                            ///< after so many steps of its own.
  bool kills = false;      ///< It is killed; otherwise, being a thread, it leaves.
  bool may_break = false;  ///< A lost peer is no failure of the test.
  bool by_grpc = false;    ///< Nothing goes through shared memory.
};

struct GroupEnd {
  std::int64_t first_step = 0;
  std::vector<cluster::Claim> done = {};
  std::int64_t asked = 0;       ///< For work, in a call of its own.
  double loss = 0;              ///< Over all data, at the end.
  tensor::TrainingState saved;  ///< Of the chief.
  tensor::TrainingState carried;
  bool lost_a_peer = false;
  bool died = false;  ///< It was told to, and there was work left for it.
};

/// One worker of a group.
class GroupWorker {
 public:
  GroupWorker(const GroupRun& run, transport::Engine& engine, cluster::Store& store)
      : run_(run),
        rank_(engine.rank()),
        net_(std::make_shared<WordNet>(10 * rank_)),  // Only worker 0's counts.
        model_(wrap(net_)),
        optimizer_(optimizer::make_optimizer(run.job.train.optimizer)),
        strategy_(make_strategy(context(engine, store))),
        handed_out_(strategy_->work() != nullptr) {}

  GroupEnd train() {
    GroupEnd end;
    try {
      train(end);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::peer_lost || !run_.may_break) throw;
      end.lost_a_peer = true;
    }
    if (rank_ != run_.dying) strategy_->carry_state(end.carried);
    strategy_->close();
    return end;
  }

 private:
  void train(GroupEnd& end) {
    end.first_step = strategy_->first_step();
    cluster::Claim claim{.step = end.first_step, .part = rank_};
    while (next(claim, end)) {
      if (rank_ == run_.dying && own_steps(end) == run_.dies_after) {
        if (run_.kills) ::kill(::getpid(), SIGKILL);
        end.died = true;
        return;
      }
      const StepOutcome outcome = step(claim, own_steps(end));
      end.done.push_back(claim);
      next_ = outcome.next;
      ++claim.step;
      if (outcome.stop) break;
    }
    if (run_.meets || handed_out_) strategy_->meet();
    if (rank_ == 0) {
      strategy_->save_state(end.saved);
      end.loss = loss_over_all();
    }
    // Nobody leaves before the chief has saved.
    strategy_->wait_for_workers();
  }

  static std::int64_t own_steps(const GroupEnd& end) {
    return static_cast<std::int64_t>(end.done.size());
  }

  StrategyContext context(transport::Engine& engine, cluster::Store& store) {
    const auto rank = static_cast<std::size_t>(rank_);
    return {.model = *model_,
            .engine = engine,
            .store = store,
            .optimizer = *optimizer_,
            .phases = phases_,
            .options = run_.job.strategy,
            .optimizer_options = run_.job.train.optimizer,
            .start = rank < run_.starts.size() ? run_.starts[rank] : nullptr,
            .seed = 3,
            .steps = run_.job.train.steps,
            .parts = run_.job.cluster.workers,
            .generation = run_.generation,
            .steps_per_epoch = WordData::kRows / WordData::kBatch,
            .servers = static_cast<int>(run_.job.cluster.servers),
            .timeout = std::chrono::seconds(60)};
  }

  bool next(cluster::Claim& claim, GroupEnd& end) {
    if (!handed_out_) return claim.step < run_.until;
    if (run_.until == 0 || (rank_ == 0 && own_steps(end) >= run_.until)) return false;
    std::optional<cluster::Claim> handed = std::exchange(next_, std::nullopt);
    if (!handed) {
      ++end.asked;
      handed = strategy_->work()->next_work();
    }
    if (handed) claim = *handed;
    return handed.has_value();
  }

  StepOutcome step(const cluster::Claim& claim, std::int64_t steps) {
    const std::int64_t parts = handed_out_ ? run_.job.cluster.workers : run_.workers;
    strategy_->space().begin_step();
    const auto loss = torch::mse_loss(net_->forward(data_.rows(data_.ids, claim, parts)),
                                      data_.rows(data_.target, claim, parts)) /
                      parts;
    const bool stop = handed_out_ && rank_ == 0 && steps + 1 >= run_.until;
    strategy_->begin_last_backward({.loss = loss.item<double>(), .stop = stop});
    loss.backward();
    return strategy_->finish_step({.lr = run_.job.train.optimizer.lr,
                                   .step = claim.step,
                                   .clip_norm = run_.job.train.clip_norm,
                                   .wants_next = handed_out_ && !stop});
  }

  double loss_over_all() {
    const torch::NoGradGuard no_gradients;
    net_->eval();
    return torch::mse_loss(net_->forward(data_.ids), data_.target).item<double>();
  }

  const GroupRun& run_;
  int rank_;
  WordData data_;
  std::shared_ptr<WordNet> net_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<optimizer::Optimizer> optimizer_;
  PhaseClock phases_;
  std::unique_ptr<Strategy> strategy_;
  bool handed_out_;
  std::optional<cluster::Claim> next_;
};

}  // namespace cohort::strategy
