// What ranks tell each other over the store: the first reason counts, the last status does, and
// nothing of it depends on the store being there.

#include "group/board.h"

#include <gmock/gmock.h>

#include "base/fail.h"

namespace cohort::group {
namespace {

constexpr int kWorld = 3;

std::unique_ptr<Board> board_on(cluster::Store& store, int rank) {
  return std::make_unique<Board>(std::make_unique<cluster::PrefixStore>(store, "board/"), rank,
                                 kWorld);
}

WaitStatus status_of(int number) {
  return {.collectives = static_cast<std::uint64_t>(number),
          .sends = std::vector<std::uint64_t>(kWorld),
          .receives = std::vector<std::uint64_t>(kWorld),
          .number = static_cast<std::uint64_t>(number),
          .call = "barrier"};
}

TEST(Board, KeepsTheFirstReason) {
  cluster::MemoryStore store;
  const auto first = board_on(store, 0), second = board_on(store, 1);
  EXPECT_FALSE(first->failure());
  first->tell_failure(Error(ErrorCode::timeout, "too late").about_rank(2));
  second->tell_failure(Error(ErrorCode::invalid, "wrong"));
  for (Board* board : {first.get(), second.get()}) {
    const auto reason = board->failure();
    ASSERT_TRUE(reason);
    EXPECT_STREQ(reason->what(), "too late");
    EXPECT_EQ(reason->code(), ErrorCode::timeout);
    EXPECT_EQ(reason->rank(), 2);
  }
}

TEST(Board, KeepsAReasonThatIsAboutNobody) {
  cluster::MemoryStore store;
  const auto board = board_on(store, 0);
  board->tell_failure(Error(ErrorCode::invalid, "wrong"));
  EXPECT_EQ(board->failure()->rank(), std::nullopt);
}

TEST(Board, KnowsHowManyHaveHeard) {
  cluster::MemoryStore store;
  const auto first = board_on(store, 0), second = board_on(store, 1);
  first->tell_failure(Error(ErrorCode::invalid, "wrong"));
  first->failure();
  first->failure();
  const auto start = Clock::now();
  first->wait_until_heard(2, Deadline::in_seconds(0.05));
  EXPECT_GE(seconds_since(start), 0.05) << "one that has heard twice is one";
  std::jthread other([&] { second->failure(); });
  first->wait_until_heard(2, Deadline::in_seconds(1000));
  EXPECT_LT(seconds_since(start), 500);
  EXPECT_FALSE(first->is_lost());
}

TEST(Board, HasTheLastStatusOfEveryRank) {
  cluster::MemoryStore store;
  const auto first = board_on(store, 0), last = board_on(store, 2);
  first->tell_status(status_of(1));
  last->tell_status(status_of(5));
  first->tell_status(status_of(2));
  const auto statuses = last->statuses();
  ASSERT_EQ(statuses.size(), 3u);
  EXPECT_EQ(statuses[0], status_of(2));
  EXPECT_EQ(statuses[1], std::nullopt);
  EXPECT_EQ(statuses[2], status_of(5));
}

TEST(Board, PassesOverWhatIsNoWordOfABoard) {
  cluster::MemoryStore store;
  store.set("board/failure", "{}");
  store.add("board/failed", 1);
  store.set("board/wait/1/1", "nothing");
  store.add("board/waits/1", 1);
  const auto board = board_on(store, 0);
  EXPECT_FALSE(board->failure());
  EXPECT_EQ(board->statuses()[1], std::nullopt);
}

/// A store whose process has died.
class LostStore : public cluster::MemoryStore {
 public:
  void set(const std::string&, const std::string&) override { lost(); }
  std::string get(const std::string&, Deadline) override { lost(); }
  std::int64_t add(const std::string&, std::int64_t) override { lost(); }
  std::string set_once(const std::string&, const std::string&) override { lost(); }

 private:
  [[noreturn]] static void lost() { fail(ErrorCode::peer_lost, "the store is gone"); }
};

TEST(Board, IsSilentWhereTheStoreIsGone) {
  Board board(std::make_unique<LostStore>(), 0, kWorld);
  board.tell_failure(Error(ErrorCode::invalid, "wrong"));
  board.tell_status(status_of(1));
  EXPECT_FALSE(board.failure());
  EXPECT_TRUE(board.is_lost());
  board.wait_until_heard(kWorld, Deadline::in_seconds(1000));
  EXPECT_EQ(board.statuses(), std::vector<std::optional<WaitStatus>>(kWorld));
}

}  // namespace
}  // namespace cohort::group
