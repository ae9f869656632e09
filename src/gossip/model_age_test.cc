// That all workers together move the mean of their models by the steps of the job, however fast
// each is, whoever sleeps or leaves: models of one number, real boxes, seeded turns.

#include "gossip/model_age.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "gossip/boxes/boxes_test_support.h"
#include "gossip/mail.h"

namespace cohort::gossip {
namespace {

constexpr std::int64_t kParts = 4;
constexpr std::int64_t kSteps = 300;

TEST(ShareOfPiece, OfOneWorkerForOnePartIsAWholeStep) {
  for (std::int64_t step = 0; step < 5; ++step) {
    EXPECT_EQ(share_of_piece(static_cast<double>(step), step, 1), 1);
  }
}

TEST(ShareOfPiece, OfWorkersThatTakeTurnsIsAWholeStep) {
  std::vector<double> ages(kParts);
  for (std::int64_t piece = 0; piece < 3 * kParts; ++piece) {
    double& age = ages[static_cast<std::size_t>(piece % kParts)];
    const double share = share_of_piece(age, piece, kParts);
    if (piece >= kParts) {
      EXPECT_EQ(share, 1);
    }
    age += share;
  }
  EXPECT_EQ(std::accumulate(ages.begin(), ages.end(), 0.0) / kParts, 3);
}

TEST(ShareOfPiece, OfOneWhoIsAloneIsThatOfItsPart) {
  double age = 10;
  for (std::int64_t piece = 40; piece < 80; ++piece) {
    const double share = share_of_piece(age, piece, kParts);
    if (piece > 40) {
      EXPECT_DOUBLE_EQ(share, 0.25);
    }
    age += share;
  }
  EXPECT_NEAR(age, 20, 0.5);
}

TEST(SharesInMean, OfWhoSaysWhatCannotBeAreNone) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  constexpr double kEndless = std::numeric_limits<double>::infinity();
  const std::vector<double> ages = {4, 4, kEndless, 4, -1};
  const auto shares = shares_in_mean(std::vector<double>{1, 3, 1, kNone, 1}, ages);
  EXPECT_EQ(shares, (std::vector<double>{0.25, 0.75, 0, 0, 0}));
  EXPECT_EQ(age_of_mean(shares, ages), 4);
  const std::vector<double> none = {kNone, kEndless};
  EXPECT_EQ(shares_in_mean(none, none), (std::vector<double>{0.5, 0.5}));
  EXPECT_EQ(age_of_mean(std::vector<double>{0.5, 0.5}, none), 0);
}

TEST(ShareOfPiece, IsNeitherNothingNorALeap) {
  EXPECT_EQ(share_of_piece(1000, 8, kParts), 0.125);
  EXPECT_EQ(share_of_piece(0, 8000, kParts), 2);
}

struct Case {
  std::string name;
  std::vector<std::uint64_t> speeds;  ///< How many of all turns a worker has.
  std::set<int> lost = {};            ///< Workers that are gone after a tenth of the pieces.
  /// When worker 2 is awake, as shares of all pieces: it ends a turn and begins the next, in whose
  /// middle it falls asleep again. Empty: it never does.
  std::vector<double> awake_at = {};
};

void PrintTo(const Case& one, std::ostream* out) {
  *out << one.name;
}

/// Workers with a model of one number, to which a step adds 1: what it is at the end tells how many
/// steps were made.
class Workers {
 public:
  explicit Workers(const Case& one)
      : case_(one), boxes_(true, world(), {.topology = kTopology, .message_bytes = sizeof(float)}) {
    for (int rank = 0; rank < world(); ++rank) {
      MailOptions options;
      options.topology = kTopology;
      options.place = {.rank = rank, .world = world(), .seed = 9};
      options.shape.count = 1;
      options.job = {.steps = kSteps, .parts = kParts};
      workers_.push_back({.mail = std::make_unique<ParameterMail>(options, std::span<float>())});
    }
  }

  double steps_moved() {
    for (Worker& one : workers_) one.piece = next_++;
    while (next_ < kParts * kSteps) {
      if (next_ > kParts * kSteps / 10) lose();
      if (wakes_up()) {
        end_turn(kSleeper);
        begin_turn(kSleeper);
      }
      const int rank = whose_turn();
      const bool sleeps = rank == kSleeper && !case_.awake_at.empty();
      if (is_lost(rank) || sleeps) continue;
      begin_turn(rank);
      end_turn(rank);
    }
    if (!case_.awake_at.empty()) end_turn(kSleeper);
    return mean();
  }

 private:
  static constexpr Topology kTopology = Topology::exponential;
  static constexpr int kSleeper = 2;

  struct Worker {
    std::unique_ptr<ParameterMail> mail;
    float model = 0;
    std::int64_t piece = 0;
  };

  int world() const { return static_cast<int>(case_.speeds.size()); }
  Worker& worker(int rank) { return workers_[static_cast<std::size_t>(rank)]; }
  bool is_lost(int rank) const { return has_lost_ && case_.lost.contains(rank); }

  void lose() {
    if (std::exchange(has_lost_, true)) return;
    for (const int rank : case_.lost) boxes_.of(rank).attendance().leave();
  }

  bool wakes_up() {
    if (naps_ == case_.awake_at.size()) return false;
    const auto when = static_cast<std::int64_t>(case_.awake_at[naps_] * kParts * kSteps);
    if (next_ < when) return false;
    ++naps_;
    return true;
  }

  int whose_turn() {
    std::uint64_t turn =
        random_.below(std::accumulate(case_.speeds.begin(), case_.speeds.end(), std::uint64_t{0}));
    int rank = 0;
    for (; turn >= case_.speeds[static_cast<std::size_t>(rank)]; ++rank) {
      turn -= case_.speeds[static_cast<std::size_t>(rank)];
    }
    return rank;
  }

  void begin_turn(int rank) {
    Worker& one = worker(rank);
    one.mail->merge(boxes_.of(rank), {&one.model, 1});
  }

  void end_turn(int rank) {
    Worker& one = worker(rank);
    const double share = share_of_piece(one.mail->age(), one.piece, kParts);
    one.model += static_cast<float>(share);
    one.mail->set_age(one.mail->age() + share);
    one.mail->send(boxes_.of(rank), {&one.model, 1});
    one.piece = next_++;
  }

  double mean() {
    std::vector<double> weights;
    std::vector<double> ages;
    for (int rank = 0; rank < world(); ++rank) {
      if (is_lost(rank)) continue;
      Worker& one = worker(rank);
      one.mail->merge(boxes_.of(rank), {&one.model, 1});
      EXPECT_NEAR(one.model, one.mail->age(), 1e-2) << "the age is what was moved";
      weights.push_back(one.mail->weight());
      ages.push_back(one.mail->age());
    }
    const std::vector<double> shares = shares_in_mean(weights, ages);
    return std::inner_product(shares.begin(), shares.end(), ages.begin(), 0.0);
  }

  const Case& case_;
  BoxesGroup boxes_;
  Random random_ = Random(17);
  std::vector<Worker> workers_;
  std::int64_t next_ = 0;
  bool has_lost_ = false;
  std::size_t naps_ = 0;
};

class ModelAge : public ::testing::TestWithParam<Case> {};

TEST_P(ModelAge, OfTheMeanIsTheStepsOfTheJob) {
  EXPECT_NEAR(Workers(GetParam()).steps_moved() / kSteps, 1, 0.02);
}

TEST(ModelAgeOfOneThatSleeps, IsNobodyElsesWheneverItWakesUp) {
  double worst = 0;
  for (double first = 0.01; first < 1; first += 0.06) {
    for (double second = first; second < 1; second += 0.005) {
      const Case one{"sleeper", {1, 1, 1, 1}, {}, {first, second}};
      worst = std::max(worst, std::abs(Workers(one).steps_moved() / kSteps - 1));
    }
  }
  EXPECT_LT(worst, 0.02);
}

/// They would need longer steps than are made.
TEST(ModelAgeOfManyMoreWorkersThanParts, FallsShort) {
  const Case four_times{"four_times", std::vector<std::uint64_t>(4 * kParts, 1)};
  EXPECT_NEAR(Workers(four_times).steps_moved() / kSteps, 0.93, 0.02);
  const Case twelve_times{"twelve_times", std::vector<std::uint64_t>(12 * kParts, 1)};
  EXPECT_NEAR(Workers(twelve_times).steps_moved() / kSteps, 0.36, 0.02);
}

INSTANTIATE_TEST_SUITE_P(Workers, ModelAge,
                         ::testing::Values(Case{"alone", {1}}, Case{"equal", {1, 1, 1, 1}},
                                           Case{"more_than_parts", {1, 1, 1, 1, 1, 1, 1, 1}},
                                           Case{"one_fast", {20, 1, 1, 1}},
                                           Case{"one_slow", {20, 20, 20, 1}},
                                           Case{"one_lost", {1, 1, 1, 1}, {2}},
                                           Case{"three_lost", {1, 1, 1, 1}, {0, 1, 3}}),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace cohort::gossip
