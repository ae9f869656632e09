#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "transport/engine.h"

namespace cohort::transport {

/// For tests: engines that are others in disguise.

/// Passes every call on to another engine. Derive from it and override what shall be different.
class ForwardingEngine : public Engine {
 public:
  explicit ForwardingEngine(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}

  std::string name() const override { return engine_->name(); }
  int rank() const override { return engine_->rank(); }
  int world() const override { return engine_->world(); }
  std::unique_ptr<Transport> connect(Deadline deadline) override {
    return engine_->connect(deadline);
  }
  std::vector<int> hosts() const override { return engine_->hosts(); }
  std::unique_ptr<Engine> group(std::span<const int> ranks, Deadline deadline) override {
    return engine_->group(ranks, deadline);
  }
  std::string address() const override { return engine_->address(); }
  SharedRegions* shared_regions() override { return engine_->shared_regions(); }
  bool sends_in_background() const override { return engine_->sends_in_background(); }

 private:
  std::unique_ptr<Engine> engine_;
};

/// An engine whose ranks share no memory, as if they were on different hosts.
class ApartEngine : public ForwardingEngine {
 public:
  using ForwardingEngine::ForwardingEngine;

  std::string name() const override { return "apart"; }
  SharedRegions* shared_regions() override { return nullptr; }
  bool sends_in_background() const override { return true; }
};

}  // namespace cohort::transport
