#pragma once

#include <memory>

#include "strategy/strategy.h"

namespace cohort::strategy {

/// The makers of all strategies, for make_strategy() and for tests that mean one of them. Each is a
/// file with a class that nobody else sees; its head tells the order of events. All workers of a
/// group call the same maker together: a strategy is ready when all have one.
///
///   file                            what travels           where the model is       workers go
///   allreduce/allreduce_in_place    nothing: one memory    once per host            in step
///   allreduce/allreduce_buckets     gradients, in buckets  a copy per worker        in step
///   allreduce/allreduce_compressed  encoded gradients      a copy per worker        in step
///   servers/gradient_push           gradients, parameters  on servers, and a copy   both ways
///   servers/delta_push              changes of parameters  on servers, and a copy   both ways
///   gossip/parameter_gossip         parameters             each worker has its own  alone
///   gossip/gradient_gossip          gradients              each worker has its own  alone

/// Synchronous data parallelism of ranks that share memory, or of one rank alone.
/// `context.engine` must have shared regions, or Error(unsupported) is thrown.
std::unique_ptr<Strategy> make_allreduce_in_place(const StrategyContext& context);

/// Synchronous data parallelism by messages on any transport: every rank has the whole model and
/// makes the same update.
std::unique_ptr<Strategy> make_allreduce_buckets(const StrategyContext& context);

/// The same with gradients that travel encoded; with compression "auto" it finds out by itself
/// whether that pays.
std::unique_ptr<Strategy> make_allreduce_compressed(const StrategyContext& context);

/// Training with parameter servers: gradients go to them after every step, new parameters come
/// back.
std::unique_ptr<Strategy> make_gradient_push(const StrategyContext& context);

/// Workers make steps of their own and push the change of their parameters now and then. Averaging
/// by a centre is the same with other words.
std::unique_ptr<Strategy> make_delta_push(const StrategyContext& context);

/// Training without a centre: what travels are parameters, merged by push-sum (Lian et al. 2018,
/// Assran et al. 2019).
std::unique_ptr<Strategy> make_parameter_gossip(const StrategyContext& context);

/// Training without a centre: what travels are gradients, which everybody applies.
std::unique_ptr<Strategy> make_gradient_gossip(const StrategyContext& context);

}  // namespace cohort::strategy
