// Every codec's exchange in worlds of one to four ranks: what was put in comes out or is still
// kept, to the same bits on all ranks and in every run, also where ranks go on from what others
// kept, and with a message that is broken.

#include "collective/compressed/gradient_exchange.h"

#include <cohort/error.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <latch>
#include <mutex>
#include <optional>

#include "base/random.h"
#include "collective/rank_threads_test_support.h"
#include "transport/transport_test_support.h"

namespace cohort::collective {
namespace {

const compression::CodecShape kShape{.count = 4003, .matrices = {{7, 40, 50}, {2100, 30, 60}}};

struct Case {
  std::string kind;
  int world;
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const std::string& kind : compression::codec_kinds()) {
    for (int world = 1; world <= 4; ++world) cases.push_back({kind, world});
  }
  return cases;
}

std::vector<float> gradients_of(int rank, int step) {
  Random random(77, static_cast<std::uint64_t>(rank * 1000 + step));
  std::vector<float> gradients(kShape.count);
  for (float& gradient : gradients) gradient = static_cast<float>(random.normal());
  return gradients;
}

void add(std::vector<double>& sum, const std::vector<float>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) sum[i] += values[i];
}

ExchangeOptions options_for(const std::string& kind, transport::Transport& transport) {
  return {.transport = transport,
          .shape = kShape,
          .compression = {.kind = kind, .ratio = 0.05, .rank = 4},
          .seed = 5,
          .timeout = std::chrono::seconds(20)};
}

class Exchanges : public ::testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(Kinds, Exchanges, ::testing::ValuesIn(all_cases()), [](const auto& test) {
  return test.param.kind + "_" + std::to_string(test.param.world);
});

/// What the ranks put in is what all of them got out and what they still hold back.
TEST_P(Exchanges, LoseNothingAndGiveAllRanksTheSameBits) {
  const auto [kind, world] = GetParam();
  constexpr int kSteps = 6;
  std::mutex mutex;
  std::vector<std::vector<float>> results(static_cast<std::size_t>(world));
  std::vector<double> put_in(kShape.count), rests(kShape.count);
  run_ranks(world, [&](transport::Transport& transport) {
    const auto exchange = make_gradient_exchange(options_for(GetParam().kind, transport));
    std::vector<double> own(kShape.count);
    std::vector<float> all_results;
    for (int step = 0; step < kSteps; ++step) {
      auto gradients = gradients_of(transport.rank(), step);
      add(own, gradients);
      exchange->sum(gradients);
      all_results.insert(all_results.end(), gradients.begin(), gradients.end());
    }
    std::vector<float> rest(kShape.count);
    exchange->add_rest(rest);
    const std::lock_guard lock(mutex);
    results[static_cast<std::size_t>(transport.rank())] = all_results;
    add(rests, rest);
    for (std::size_t i = 0; i < own.size(); ++i) put_in[i] += own[i];
  });
  for (const auto& result : results) ASSERT_EQ(result, results[0]);
  for (std::size_t i = 0; i < kShape.count; ++i) {
    double got = rests[i];
    for (int step = 0; step < kSteps; ++step) {
      got += results[0][static_cast<std::size_t>(step) * kShape.count + i];
    }
    ASSERT_NEAR(got, put_in[i], 2e-3) << i;
  }
}

TEST_P(Exchanges, AreTheSameInEveryRun) {
  const auto [kind, world] = GetParam();
  std::vector<float> runs[2];
  for (auto& run : runs) {
    run_ranks(world, [&](transport::Transport& transport) {
      const auto exchange = make_gradient_exchange(options_for(GetParam().kind, transport));
      auto gradients = gradients_of(transport.rank(), 0);
      exchange->sum(gradients);
      if (transport.rank() == 0) run = gradients;
    });
  }
  EXPECT_EQ(runs[0], runs[1]);
}

/// Loses what it receives with tag 1, the last of a sum, once `others_done`.
class LosingTransport : public transport::Transport {
 public:
  LosingTransport(transport::Transport& real, std::latch& others_done)
      : real_(real), others_done_(others_done) {}

  int rank() const override { return real_.rank(); }
  int size() const override { return real_.size(); }
  transport::OperationPtr isend(int peer, transport::Tag tag,
                                std::span<const std::byte> bytes) override {
    return real_.isend(peer, tag, bytes);
  }
  transport::OperationPtr irecv(int peer, transport::Tag tag, std::span<std::byte> bytes) override {
    transport::OperationPtr operation = real_.irecv(peer, tag, bytes);
    if (tag == 1) lost_ = operation.get();
    return operation;
  }
  void wait(transport::Operation& operation, Deadline deadline) override {
    real_.wait(operation, deadline);
    if (&operation != lost_) return;
    others_done_.wait();
    throw Error(ErrorCode::peer_lost, "rank 0 is gone").about_rank(0);
  }
  void close() noexcept override { real_.close(); }
  Traffic traffic() const override { return real_.traffic(); }

 private:
  transport::Transport& real_;
  std::latch& others_done_;
  transport::Operation* lost_ = nullptr;
};

// Rank 0 comes to the end of the second sum and rank 1 does not, though it has sent all.
TEST(Exchange, KnowsWhatARankKeepsWhoseLastSumOnlyOthersHave) {
  for (const std::string kind : {"topk", "sign", "int8"}) {
    SCOPED_TRACE(kind);
    std::latch done(1);
    std::vector<double> put_in(kShape.count), got(kShape.count), before(kShape.count);
    std::mutex mutex;
    run_ranks(2, [&](transport::Transport& transport) {
      std::optional<LosingTransport> losing;
      auto exchange = make_gradient_exchange(options_for(kind, transport));
      std::vector<float> first = gradients_of(transport.rank(), 0);
      std::vector<float> second = gradients_of(transport.rank(), 1);
      {
        const std::lock_guard lock(mutex);
        add(put_in, first);
        add(put_in, second);
      }
      exchange->sum(first);
      if (transport.rank() == 0) {
        exchange->sum(second);
        done.count_down();
        const std::lock_guard lock(mutex);
        for (const auto& floats : {first, second, exchange->memory().rest}) {
          add(got, floats);
          add(before, floats);
        }
        return;
      }
      const ExchangeMemory memory = exchange->memory();
      losing.emplace(transport, done);
      exchange = make_gradient_exchange(options_for(kind, *losing));
      exchange->recall(memory);
      EXPECT_THROW(exchange->sum(second), Error);
      EXPECT_EQ(exchange->memory().rest, memory.rest);
      const std::lock_guard lock(mutex);
      add(got, exchange->memory_if_done().rest);
      add(before, exchange->memory().rest);
    });
    double wrong = 0;
    for (std::size_t i = 0; i < kShape.count; ++i) {
      ASSERT_NEAR(got[i], put_in[i], 2e-3) << i;
      wrong = std::max(wrong, std::abs(before[i] - put_in[i]));
    }
    EXPECT_GT(wrong, kind == "int8" ? 0.01 : 0.5) << "that it was undone matters";
  }
}

/// With one rank nothing need travel.
TEST_P(Exchanges, SendLessThanWholeFloats) {
  const auto [kind, world] = GetParam();
  if (kind == "none" || world == 1) return;
  run_ranks(world, [&](transport::Transport& transport) {
    const auto exchange = make_gradient_exchange(options_for(GetParam().kind, transport));
    auto gradients = gradients_of(transport.rank(), 0);
    exchange->sum(gradients);
    const double whole = 2.0 * (transport.size() - 1) / transport.size() * 4 * kShape.count;
    EXPECT_LT(static_cast<double>(transport.traffic().sent), 0.6 * whole);
  });
}

/// Messages of megabytes: larger than what any engine takes without the peer receiving.
TEST(Exchange, WorksOnEveryEngine) {
  const transport::TestGroup engines[] = {
      {"inproc", [](int size) { return std::make_unique<transport::InprocMeeting>(size); }},
      {"shm",
       [](int size) {
         return std::make_unique<transport::ShmMeeting>(size, transport::ShmOptions{});
       }},
      {"gloo", [](int size) { return std::make_unique<transport::GlooMeeting>(size); }}};
  for (const transport::TestGroup& engine : engines) {
    for (const std::string& kind : compression::codec_kinds()) {
      SCOPED_TRACE(engine.name + ", " + kind);
      engine.run(3, [&](transport::Transport& transport) {
        ExchangeOptions options = options_for(kind, transport);
        options.shape = {.count = 1500000, .matrices = {{0, 1000, 1400}}};
        options.compression.ratio = 1;
        const auto exchange = make_gradient_exchange(options);
        for (int step = 0; step < 2; ++step) {
          std::vector<float> gradients(options.shape.count, 0.5F);
          exchange->sum(gradients);
          for (const float sum : gradients) ASSERT_NEAR(sum, 1.5F, 0.05F);
        }
      });
    }
  }
}

TEST(Exchange, OfHalvesIsCloseToTheSum) {
  run_ranks(3, [&](transport::Transport& transport) {
    const auto exchange = make_gradient_exchange(options_for("fp16", transport));
    auto gradients = gradients_of(transport.rank(), 0);
    exchange->sum(gradients);
    const auto a = gradients_of(0, 0), b = gradients_of(1, 0), c = gradients_of(2, 0);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      ASSERT_NEAR(gradients[i], a[i] + b[i] + c[i], 0.01);
    }
  });
}

/// More ranks than a vector of 20 floats has segments: some own nothing.
TEST(Exchange, WorksWhereSomeRanksOwnNothing) {
  run_ranks(4, [&](transport::Transport& transport) {
    ExchangeOptions options = options_for("bf16", transport);
    options.shape = {.count = 20};
    const auto exchange = make_gradient_exchange(options);
    std::vector<float> gradients(20, 1);
    exchange->sum(gradients);
    EXPECT_THAT(gradients, ::testing::Each(4.0F));
  });
}

TEST(Exchange, MomentumIsAppliedBeforeTheChoice) {
  run_ranks(2, [&](transport::Transport& transport) {
    ExchangeOptions options = options_for("topk", transport);
    options.shape = {.count = 2};
    options.compression.ratio = 0.5;
    options.momentum = {.factor = 0.5};
    const auto exchange = make_gradient_exchange(options);
    const auto next = [&] {
      std::vector<float> gradients = {4, 3};
      exchange->sum(gradients);
      return gradients;
    };
    EXPECT_EQ(next(), (std::vector<float>{8, 0}));
    EXPECT_EQ(next(), (std::vector<float>{0, 15})) << "3 and then 0.5 * 3 + 3, of both ranks";
  });
}

/// Takes what rank 0 sends and answers with three bytes that are no message.
void send_nonsense(transport::Transport& transport) {
  const Deadline deadline = Deadline::in_seconds(20);
  std::uint64_t length = 3;
  const std::vector<std::byte> nonsense(length);
  const auto bytes = std::as_writable_bytes(std::span(&length, 1));
  for (const auto& [tag, message] :
       {std::pair<transport::Tag, std::span<const std::byte>>(0, bytes),
        std::pair<transport::Tag, std::span<const std::byte>>(1, nonsense)}) {
    transport.wait(*transport.isend(0, tag, message), deadline);
  }
  transport.wait(*transport.irecv(0, 0, bytes), deadline);
  std::vector<std::byte> message(length);
  transport.wait(*transport.irecv(0, 1, message), deadline);
}

TEST(Exchange, ABrokenMessageIsBlamedOnItsSender) {
  run_ranks(2, [&](transport::Transport& transport) {
    if (transport.rank() == 1) return send_nonsense(transport);
    const auto exchange = make_gradient_exchange(options_for("topk", transport));
    auto gradients = gradients_of(0, 0);
    try {
      exchange->sum(gradients);
      ADD_FAILURE() << "three bytes were taken for gradients";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::corrupt) << error.what();
      EXPECT_EQ(error.rank(), 1);
    }
  });
}

}  // namespace
}  // namespace cohort::collective
