// Which ranks wait for each other for ever, as far as what they have told goes.

#include "group/wait_graph.h"

#include <gmock/gmock.h>

namespace cohort::group {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::size_t kWorld = 4;
using Statuses = std::vector<std::optional<WaitStatus>>;

/// A rank that has made `made` collectives and waits in the last.
WaitStatus in_collective(std::uint64_t made) {
  return {.collectives = made,
          .sends = std::vector<std::uint64_t>(kWorld),
          .receives = std::vector<std::uint64_t>(kWorld),
          .number = made,
          .call = "barrier"};
}

/// A rank that has made `made` collectives and waits for the peer's first receive from it.
WaitStatus in_send(std::uint64_t made, int peer) {
  WaitStatus status = in_collective(made);
  status.waits_for = WaitStatus::For::receive;
  status.peer = peer;
  status.number = 1;
  status.sends[static_cast<std::size_t>(peer)] = 1;
  return status;
}

WaitStatus in_receive(std::uint64_t made, int peer) {
  WaitStatus status = in_collective(made);
  status.waits_for = WaitStatus::For::send;
  status.peer = peer;
  status.number = 1;
  status.receives[static_cast<std::size_t>(peer)] = 1;
  return status;
}

TEST(WaitGraph, KnowsCircles) {
  EXPECT_THAT(stuck_ranks({in_send(0, 1), in_send(0, 0), {}, {}}), ElementsAre(0, 1));
  EXPECT_THAT(stuck_ranks({in_receive(0, 1), in_collective(1), {}, {}}), ElementsAre(0, 1));
  EXPECT_THAT(stuck_ranks({in_receive(0, 1), in_receive(0, 2), in_receive(0, 0), {}}),
              ElementsAre(0, 1, 2));
  // Who waits for those who are stuck is so too.
  EXPECT_THAT(stuck_ranks({in_receive(0, 1), in_collective(1), in_send(0, 0), in_collective(1)}),
              ElementsAre(0, 1, 2, 3));
}

TEST(WaitGraph, LeavesAloneWhoWaitsForCallsThatWereMade) {
  EXPECT_THAT(stuck_ranks({in_send(0, 1), in_receive(0, 0), {}, {}}), IsEmpty());
  EXPECT_THAT(stuck_ranks({in_collective(2), in_collective(2), in_collective(2), in_collective(2)}),
              IsEmpty());
  // 1 has not come to the second collective yet, but only waits for a send that 0 has made.
  WaitStatus sent = in_collective(2);
  sent.sends[1] = 1;
  EXPECT_THAT(stuck_ranks({sent, in_receive(1, 0), {}, {}}), IsEmpty());
}

TEST(WaitGraph, LeavesAloneWhoMayStillBeServed) {
  // 2 has not said that it waits.
  EXPECT_THAT(stuck_ranks({in_receive(0, 1), in_receive(0, 2), {}, {}}), IsEmpty());
  EXPECT_THAT(stuck_ranks({in_collective(1), {}, {}, {}}), IsEmpty());
  EXPECT_THAT(stuck_ranks({{}, {}, {}, {}}), IsEmpty());
  // But a circle beside one that may is one.
  EXPECT_THAT(stuck_ranks({in_send(0, 1), in_send(0, 0), in_receive(0, 3), {}}), ElementsAre(0, 1));
}

TEST(WaitGraph, ReadsWhatItWrites) {
  WaitStatus status = in_receive(7, 3);
  status.sends[2] = 5;
  EXPECT_EQ(status_from(encode(status), kWorld), status);
  EXPECT_EQ(status_from(encode(in_collective(1)), kWorld), in_collective(1));
}

TEST(WaitGraph, ReadsNoStatusFromOtherTexts) {
  const std::string right = encode(in_receive(7, 3));
  EXPECT_EQ(status_from(right, kWorld + 1), std::nullopt) << "of another group";
  for (std::size_t size = 0; size < right.size(); ++size) {
    EXPECT_EQ(status_from(right.substr(0, size), kWorld), std::nullopt) << size;
  }
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = right;
    return text.replace(text.find(from), from.size(), to);
  };
  EXPECT_EQ(status_from(with("\"peer\":3", "\"peer\":4"), kWorld), std::nullopt);
  EXPECT_EQ(status_from(with("\"peer\":3", "\"peer\":-2"), kWorld), std::nullopt);
  EXPECT_EQ(status_from(with("\"for\":2", "\"for\":3"), kWorld), std::nullopt);
  EXPECT_EQ(status_from(with("\"number\":1", "\"number\":\"1\""), kWorld), std::nullopt);
}

}  // namespace
}  // namespace cohort::group
