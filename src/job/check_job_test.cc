#include "job/check_job.h"

#include <cohort/model.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>

#include "base/fail.h"
#include "model/architecture.h"

/// A good job is spoiled in one place after the other, and the words of the refusal are looked for.

namespace cohort::job {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Job good_job() {
  Job job;
  job.model.preset = "mlp";
  job.data.kind = "generated";
  job.data.task = "blobs";
  job.train.steps = 10;
  return job;
}

/// What check_job says of the good job after `spoil`; empty where it has no objection.
std::string objection(const std::function<void(Job&)>& spoil) {
  Job job = good_job();
  spoil(job);
  try {
    check_job(job);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid) << error.what();
    return error.what();
  }
  return "";
}

LayerOptions layer_of(const std::string& type, std::int64_t out = 0) {
  LayerOptions layer;
  layer.type = type;
  layer.out = out;
  return layer;
}

TEST(CheckJob, AcceptsAGoodJob) {
  EXPECT_EQ(objection([](Job&) {}), "");
}

TEST(CheckJob, ExactlyOneModel) {
  EXPECT_THAT(objection([](Job& j) { j.model.preset = ""; }), HasSubstr("has no model"));
  EXPECT_THAT(objection([](Job& j) { j.model.torchscript = "a.pt"; }),
              HasSubstr("more than one model"));
  EXPECT_THAT(objection([](Job& j) { j.model.make = [] { return nullptr; }; }),
              HasSubstr("more than one model"));
  EXPECT_EQ(objection([](Job& j) {
              j.model.preset = "";
              j.model.make = [] { return nullptr; };
            }),
            "");
}

TEST(CheckJob, KeysThatThePresetDoesNotRead) {
  EXPECT_EQ(objection([](Job& j) { j.model.hidden = {8}; }), "");
  EXPECT_EQ(objection([](Job& j) { j.model.depth = 2; }),
            "model.depth is set, but only the preset gpt-mini reads it");
}

TEST(CheckJob, LayersOfAProgram) {
  const auto with_layer = [](const LayerOptions& layer) {
    return objection([&](Job& j) {
      j.model.preset = "";
      j.model.layers = {layer_of("flatten"), layer};
    });
  };
  EXPECT_EQ(with_layer(layer_of("linear", 3)), "");
  EXPECT_THAT(with_layer(layer_of("liner", 3)),
              HasSubstr("model.layers[2].type \"liner\" is unknown"));
  EXPECT_THAT(with_layer(layer_of("linear", -3)),
              HasSubstr("model.layers[2].out must be from 0 to 16777216, but is -3"));
  LayerOptions branch = layer_of("residual");
  branch.layers = {layer_of("rleu")};
  EXPECT_THAT(with_layer(branch), HasSubstr("model.layers[2].layers[1].type \"rleu\" is unknown"));
}

// What model.json could not hold would be found out after the training.
TEST(CheckJob, LayersNestOnlyAsDeepAsModelJsonCan) {
  LayerOptions layer = layer_of("relu");
  const auto wrap = [&] {
    LayerOptions outer = layer_of("residual");
    outer.layers = {layer};
    layer = outer;
  };
  const auto with_layer = [&] {
    return objection([&](Job& j) {
      j.model.preset = "";
      j.model.layers = {layer};
    });
  };
  for (int level = 1; level < model::kDeepestLayers; ++level) wrap();
  EXPECT_EQ(with_layer(), "");
  wrap();
  EXPECT_THAT(with_layer(), HasSubstr("15 lists of layers deep; model.json has room for 14"));
}

TEST(CheckJob, EitherEpochsOrSteps) {
  EXPECT_THAT(objection([](Job& j) { j.train.steps = 0; }),
              HasSubstr("set train.epochs or train.steps"));
  EXPECT_THAT(objection([](Job& j) { j.train.epochs = 2; }), HasSubstr("both set"));
}

TEST(CheckJob, BatchIsSharedByTheWorkers) {
  EXPECT_THAT(objection([](Job& j) {
                j.train.batch = 2;
                j.cluster.workers = 4;
              }),
              HasSubstr("a batch of 2 cannot be shared by 4 workers"));
  EXPECT_THAT(objection([](Job& j) {
                j.train.batch = 8;
                j.train.accumulate = 4;
                j.cluster.workers = 3;
              }),
              AllOf(HasSubstr("train.accumulate"), HasSubstr("leaves 2 samples"),
                    HasSubstr("3 workers"), HasSubstr("at most 2")));
  EXPECT_EQ(objection([](Job& j) {
              j.train.batch = 6;
              j.train.accumulate = 2;
              j.cluster.workers = 3;
            }),
            "");
}

TEST(CheckJob, LimitsHoldForProgramsToo) {
  EXPECT_THAT(objection([](Job& j) { j.cluster.workers = 0; }),
              HasSubstr("cluster.workers must be from 1 to 4096, but is 0"));
  EXPECT_THAT(objection([](Job& j) { j.train.accumulate = 0; }), HasSubstr("train.accumulate"));
  EXPECT_THAT(objection([](Job& j) { j.strategy.kind = "alreduce"; }),
              HasSubstr("did you mean \"allreduce\"?"));
  EXPECT_THAT(objection([](Job& j) { j.train.validate = "often"; }), HasSubstr("train.validate"));
  EXPECT_THAT(
      objection([](Job& j) { j.train.optimizer.lr = std::numeric_limits<double>::quiet_NaN(); }),
      HasSubstr("train.optimizer.lr must be a finite number, but is nan"));
}

TEST(CheckJob, CheckpointsAreKeptInTwosAndMore) {
  EXPECT_THAT(objection([](Job& j) { j.checkpoint.keep = 1; }),
              HasSubstr("checkpoint.keep must be from 2 to 1000000, but is 1"));
  EXPECT_THAT(objection([](Job& j) { j.checkpoint.every_seconds = -1; }),
              HasSubstr("checkpoint.every_seconds"));
  EXPECT_THAT(objection([](Job& j) { j.checkpoint.every_steps = -1; }),
              HasSubstr("checkpoint.every_steps"));
}

TEST(CheckJob, OptimizerAndScheduleAreChecked) {
  EXPECT_THAT(objection([](Job& j) { j.train.optimizer.kind = "adma"; }), HasSubstr("adam"));
  EXPECT_THAT(objection([](Job& j) { j.train.schedule.kind = "step"; }), HasSubstr("step_size"));
}

TEST(CheckJob, DataNeedsItsFileAndATaskItKnows) {
  EXPECT_THAT(objection([](Job& j) { j.data.kind = "text"; }), HasSubstr("data.path must name"));
  EXPECT_THAT(objection([](Job& j) { j.data.task = "values"; }), HasSubstr("data.task"));
  EXPECT_THAT(objection([](Job& j) {
                j.data.kind = "csv";
                j.data.path = "a.csv";
                j.data.task = "blobs";
              }),
              HasSubstr("it can be classes or values"));
}

TEST(CheckJob, LossFitsTheTargets) {
  EXPECT_THAT(objection([](Job& j) { j.train.loss = "mean-squared-error"; }),
              HasSubstr("need \"cross-entropy\""));
  EXPECT_THAT(objection([](Job& j) { j.data.task = "regression"; }),
              HasSubstr("need \"mean-squared-error\""));
  EXPECT_EQ(objection([](Job& j) {
              j.data.task = "regression";
              j.train.loss = "mean-squared-error";
            }),
            "");
}

TEST(CheckJob, OnlyWhatHasNamesCanBeUnknown) {
  const auto with = [](const std::string& kind, const std::string& task) {
    return objection([&](Job& j) {
      j.data.kind = kind;
      j.data.task = task;
      j.data.path = "a";
      j.data.unknown = "accept";
      if (task == "values") j.train.loss = "mean-squared-error";
    });
  };
  EXPECT_THAT(with("generated", "blobs"), HasSubstr("data.kind \"generated\" has no classes"));
  EXPECT_THAT(with("mnist", "digits"), HasSubstr("data.kind \"mnist\""));
  EXPECT_THAT(with("csv", "values"), HasSubstr("data.task \"values\""));
  for (const char* kind : {"csv", "libsvm", "text"}) EXPECT_EQ(with(kind, "digits"), "") << kind;
}

TEST(CheckJob, ServersOnlyWhereTheyAreUsed) {
  EXPECT_THAT(objection([](Job& j) { j.cluster.servers = 1; }), HasSubstr("uses no servers"));
}

TEST(CheckJob, EngineFitsTheReplication) {
  EXPECT_THAT(
      objection([](Job& j) { j.cluster.engine = "inproc"; }),
      AllOf(HasSubstr("cluster.engine \"inproc\""), HasSubstr("auto, shm, shm+gloo or gloo")));
  const auto in_graph = [](const std::string& engine) {
    return objection([&](Job& j) {
      j.cluster.replication = "in-graph";
      j.cluster.engine = engine;
    });
  };
  EXPECT_EQ(in_graph("auto"), "");
  EXPECT_EQ(in_graph("inproc"), "");
  EXPECT_THAT(in_graph("shm"), HasSubstr("it can be auto or inproc"));
}

TEST(CheckJob, WhoIsLostWhenMakesSense) {
  EXPECT_THAT(objection([](Job& job) { job.cluster.min_workers = 2; }),
              AllOf(HasSubstr("cluster.min_workers is 2"), HasSubstr("1 workers")));
  EXPECT_THAT(objection([](Job& job) { job.cluster.silence_lost_seconds = 2; }),
              HasSubstr("silence_warn_seconds = 5"));
}

}  // namespace
}  // namespace cohort::job
