#pragma once

#include <gtest/gtest.h>

#include <mutex>
#include <set>

#include "launch/invented_processes_test_support.h"
#include "launch/launch.h"

namespace cohort::launch {

inline constexpr int kLaunchWorkers = 4;
inline constexpr std::int64_t kLaunchSteps = 60;

/// A launcher whose processes are threads that meet with what a test plans for them.
class LaunchTest : public testing::Test {
 protected:
  explicit LaunchTest(int servers = 0) : control_(kLaunchWorkers, servers) {
    cluster_.workers = kLaunchWorkers;
    cluster_.timeout_seconds = 20;
    cluster_.silence_warn_seconds = 5;
    cluster_.silence_lost_seconds = 10;
    for (int worker = 0; worker < kLaunchWorkers; ++worker) {
      plans_.push_back({.workers = {worker}, .world = kLaunchWorkers});
    }
    cluster_.servers = servers;
    for (int server = 0; server < servers; ++server) {
      plans_.push_back({.servers = {server}, .world = kLaunchWorkers});
    }
  }

  LaunchResult launch(const FatePlan& plan) {
    InventedProcesses processes({.control = control_,
                                 .steps = kLaunchSteps,
                                 .lockstep = traits_.lockstep,
                                 .plan = plan,
                                 .no_process = no_process_,
                                 .joined = [this](const cluster::View& view) { note(view); },
                                 .reaped = &reaped_});
    RunOptions quiet;
    quiet.quiet = true;
    Progress progress(quiet, control_, kLaunchWorkers);
    RunStatus status("");
    const LaunchResult result =
        launch_workers({.cluster = cluster_,
                        .traits = traits_,
                        .control = control_,
                        .processes = processes,
                        .plans = plans_,
                        .progress = progress,
                        .status = status,
                        .requests = requests_,
                        .log_of = [](const ProcessPlan&) { return std::filesystem::path(); },
                        .reconcile_servers = [this] { ++reconciled_; }});
    for (int worker = 0; worker < cluster_.workers; ++worker)
      starts_.push_back(processes.started(worker));
    for (int server = 0; server < cluster_.servers; ++server) {
      server_starts_.push_back(processes.started_server(server));
    }
    return result;
  }

  /// The last group that somebody was in.
  cluster::View last_view() {
    const std::lock_guard lock(mutex_);
    return last_view_;
  }

  void note(const cluster::View& view) {
    const std::lock_guard lock(mutex_);
    if (view.generation > last_view_.generation) last_view_ = view;
  }

  bool all_finished() const {
    return std::ranges::all_of(control_.cards(), [](const WorkerCard& card) {
      return card.finished.load() && card.step.load() == kLaunchSteps;
    });
  }

  /// Dies when as many have come here.
  Fate dies_with_others(const Moment& moment, int others) {
    const std::lock_guard lock(mutex_);
    dying_.insert(moment.worker);
    return static_cast<int>(dying_.size()) == others ? Fate::dies : Fate::waits;
  }

  bool all_train() const {
    return std::ranges::all_of(control_.cards(), [](const WorkerCard& card) {
      return card.state.load() == TaskState::training;
    });
  }

  static std::vector<int> numbers_of(const std::vector<TaskFailure>& failures) {
    std::vector<int> numbers;
    for (const TaskFailure& failure : failures) numbers.push_back(failure.number);
    return numbers;
  }

  ClusterOptions cluster_;
  kinds::StrategyTraits traits_{.lockstep = true, .loss_stops_all = true};
  ControlBlock control_;
  InventedRequests requests_;
  std::function<bool(const ProcessPlan& process)> no_process_;  // Where none can be made.
  std::vector<ProcessPlan> plans_;
  std::vector<int> starts_;          // Processes that each worker has had,
  std::vector<int> server_starts_;   // and each server.
  std::atomic<int> reconciled_ = 0;  // How often memories of servers were.
  std::atomic<int> reaped_ = 0;
  std::mutex mutex_;
  cluster::View last_view_;
  std::set<int> dying_;
  std::atomic<bool> asked_ = false;
};

}  // namespace cohort::launch
