#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>

#include "transport/engine.h"

namespace cohort::transport {

/// For tests: engines that are others in disguise.

/// Passes every call on to another engine. Derive from it and override what shall be different.
class ForwardingEngine : public Engine {
 public:
  /// `engine` must outlive this one.
  explicit ForwardingEngine(Engine& engine) : Engine(engine.facts()), engine_(engine) {}

  explicit ForwardingEngine(std::unique_ptr<Engine> engine)
      : ForwardingEngine(std::move(engine), [](EngineFacts&) {}) {}

  /// `disguise` changes what this engine says of itself.
  template <class Disguise>
  ForwardingEngine(std::unique_ptr<Engine> engine, Disguise&& disguise)
      : Engine(disguised(engine->facts(), disguise)), owned_(std::move(engine)), engine_(*owned_) {}

  std::unique_ptr<Transport> connect(Deadline deadline) override {
    return engine_.connect(deadline);
  }
  std::unique_ptr<Engine> group(std::span<const int> ranks, Deadline deadline) override {
    return engine_.group(ranks, deadline);
  }
  SharedRegions* shared_regions() override { return engine_.shared_regions(); }

 private:
  template <class Disguise>
  static EngineFacts disguised(EngineFacts facts, Disguise&& disguise) {
    disguise(facts);
    return facts;
  }

  std::unique_ptr<Engine> owned_;  // Null: it belongs to somebody else.
  Engine& engine_;
};

/// An engine whose ranks share no memory, as if they were on different hosts, and whose network
/// does the sending.
class ApartEngine : public ForwardingEngine {
 public:
  explicit ApartEngine(std::unique_ptr<Engine> engine)
      : ForwardingEngine(std::move(engine), [](EngineFacts& facts) {
          facts.name = "apart";
          facts.sends_in_background = true;
        }) {}
  using ForwardingEngine::ForwardingEngine;

  SharedRegions* shared_regions() override { return nullptr; }
};

}  // namespace cohort::transport
