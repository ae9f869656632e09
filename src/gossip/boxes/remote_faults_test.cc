// What a worker that has proved itself can say to another's gossip, and what must not come of it.

#include <cohort/error.h>
#include <gmock/gmock.h>

#include <array>
#include <cstring>
#include <limits>

#include "gossip/boxes/boxes_test_support.h"
#include "gossip/boxes/remote_message.h"
#include "gossip/mail.h"
#include "rpc/rpc.h"

namespace cohort::gossip {
namespace {

using Kind = RemoteHeader::Kind;

constexpr int kPartsHere = 2;

/// Three workers with work for some steps, and a connection of rank 1's to rank 0.
class Insider : public ::testing::Test {
 protected:
  static PeerBoxesOptions options() {
    return {.topology = Topology::all,
            .message_bytes = 64,
            .claims = {.work = {.next = 0, .parts = kPartsHere}, .end_step = 5}};
  }

  /// Whether rank 0 refuses it. Throws what else goes wrong.
  bool refuses(const RemoteHeader& header, std::span<const std::byte> message = {}) {
    try {
      client_.call({bytes_of(header), message}, Deadline::in_seconds(60));
      return false;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::corrupt && error.code() != ErrorCode::invalid) throw;
      return true;
    }
  }

  std::int64_t left_from() { return group_.of(0).claims().left().next; }

  BoxesGroup group_{false, 3, options()};
  rpc::RpcClient client_{group_.store.get("gossip/address@worker-0", Deadline::in_seconds(60)),
                         group_.store.pass(), member_of(1)};
};

TEST_F(Insider, SpeaksForNobodyElseInAnyCall) {
  for (const Kind kind : {Kind::put, Kind::claim, Kind::done, Kind::stop, Kind::ping}) {
    for (const int from : {0, 2, 3, -1, std::numeric_limits<int>::max()}) {
      EXPECT_TRUE(refuses({.from = from, .kind = kind, .has_done = 1}))
          << from << ", kind " << static_cast<int>(kind);
    }
  }
  EXPECT_FALSE(group_.of(0).take(1) || group_.of(0).take(2));
  EXPECT_EQ(left_from(), 0) << "nothing was handed out";
  EXPECT_FALSE(group_.of(0).claims().stopped());
  EXPECT_FALSE(refuses({.from = 1, .kind = Kind::ping}));
}

TEST_F(Insider, IsDoneOnlyWithWhatItHasTaken) {
  const auto mine = group_.of(0).claims().next();
  ASSERT_TRUE(mine);
  for (const std::int64_t step : {std::int64_t{0}, std::int64_t{4}, std::int64_t{-1},
                                  std::numeric_limits<std::int64_t>::max()}) {
    for (const int part : {0, 1, -1, std::numeric_limits<int>::min()}) {
      EXPECT_FALSE(
          refuses({.from = 1, .kind = Kind::done, .has_done = 1, .part = part, .step = step}));
    }
  }
  const cluster::WorkLeft left = group_.of(0).claims().left();
  EXPECT_EQ(left.next, 1);
  EXPECT_EQ(left.again, (std::vector<cluster::Claim>{*mine})) << "rank 0 still works on it";
}

TEST_F(Insider, CannotWeighMoreThanAllOrSendWhatIsNoNumber) {
  constexpr double kWrong[] = {std::numeric_limits<double>::infinity(),
                               std::numeric_limits<double>::quiet_NaN()};
  const std::array<float, 2> model = {100, 100};
  const auto bytes = std::as_bytes(std::span(model));
  for (const double wrong : kWrong) {
    EXPECT_TRUE(refuses({.from = 1, .weight = wrong}, bytes));
    EXPECT_TRUE(refuses({.from = 1, .weight = 1, .age = wrong}, bytes));
    EXPECT_TRUE(refuses({.from = 1, .weight = 1, .rates = wrong}, bytes));
  }
  EXPECT_TRUE(refuses({.from = 1, .weight = -1}, bytes));

  MailOptions of_mail;
  of_mail.topology = Topology::all;
  of_mail.place = {.rank = 0, .world = 3};
  of_mail.compression.kind = "none";
  of_mail.shape = {.count = 2};
  std::vector<float> own = {1, 2};
  ParameterMail mail(of_mail, own);
  EXPECT_FALSE(refuses({.from = 1, .weight = 1e30}, bytes)) << "what it weighs its reader knows";
  mail.merge(group_.of(0), own);
  EXPECT_EQ(own, (std::vector<float>{1, 2}));
  EXPECT_EQ(mail.weight(), 1);
  EXPECT_EQ(mail.left_out(), 1);
}

std::vector<std::byte> answer_with(const ClaimReply& reply, const std::vector<std::int64_t>& left) {
  std::vector<std::byte> answer(sizeof reply + left.size() * sizeof(std::int64_t));
  std::memcpy(answer.data(), &reply, sizeof reply);
  if (!left.empty()) {
    std::memcpy(answer.data() + sizeof reply, left.data(), left.size() * sizeof(std::int64_t));
  }
  return answer;
}

TEST(ClaimAnswer, SaysWhatToDoAndWhatIsLeft) {
  const auto answer = read_claim_answer(
      answer_with({.step = 2, .part = 1, .kind = ClaimReply::Kind::work}, {7, 3}), kPartsHere);
  EXPECT_EQ(answer.reply.step, 2);
  EXPECT_EQ(answer.left.next, 7);
  EXPECT_EQ(answer.left.again, (std::vector<cluster::Claim>{{.step = 1, .part = 1}}));
}

// Rank 0 may lie as any other: what it hands out is looked up in an order of samples.
TEST(ClaimAnswer, OfAPieceThatCannotBeIsRefused) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const auto refused = [](const ClaimReply& reply, const std::vector<std::int64_t>& left) {
    try {
      read_claim_answer(answer_with(reply, left), kPartsHere);
      return false;
    } catch (const Error& error) {
      return error.code() == ErrorCode::corrupt;
    }
  };
  const auto work = [](std::int64_t step, int part) {
    return ClaimReply{.step = step, .part = part, .kind = ClaimReply::Kind::work};
  };
  EXPECT_FALSE(refused(work(0, 0), {0}));
  for (const auto& [step, part] : {std::pair<std::int64_t, int>{-1, 0},
                                   {0, -1},
                                   {0, kPartsHere},
                                   {kMost, 1},
                                   {kMost / kPartsHere, 0}}) {
    EXPECT_TRUE(refused(work(step, part), {0})) << step << ", " << part;
  }
  EXPECT_TRUE(refused({}, {})) << "nobody says what is left";
  EXPECT_TRUE(refused({}, {-1}));
  EXPECT_TRUE(refused({}, {4, -1}));
  EXPECT_TRUE(refused({}, {4, 4}));
  EXPECT_TRUE(refused({.kind = static_cast<ClaimReply::Kind>(3)}, {0}));
}

}  // namespace
}  // namespace cohort::gossip
