// What the transport of threads has beyond the conformance suite: which sends are complete at once,
// in which order halves meet, and what a close withdraws. Mostly one thread that plays all ranks.

#include "transport/inproc/inproc.h"

#include <cohort/error.h>
#include <gtest/gtest.h>

#include <future>
#include <optional>
#include <string>

#include "transport/ranks_test_support.h"

namespace cohort::transport {
namespace {

/// Far above what is copied when it is sent.
constexpr std::size_t large = 1 << 20;

std::vector<std::byte> filled(std::size_t size, int value) {
  return std::vector<std::byte>(size, static_cast<std::byte>(value));
}

Deadline at_once() {
  return Deadline::in_seconds(0);
}

void send_small(Transport& from, int peer, int value) {
  const auto bytes = filled(8, value);
  const auto send = from.isend(peer, 1, bytes);
  from.wait(*send, at_once());
}

/// What `call` throws, or nothing.
template <class Call>
std::optional<Error> error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

TEST(Inproc, SmallSendIsCompleteBeforeItIsReceived) {
  auto ends = make_inproc_group(2);
  auto sent = filled(100, 1);
  const auto send = ends[0]->isend(1, 5, sent);
  ends[0]->wait(*send, at_once());
  sent = filled(100, 2);

  auto received = filled(100, 0);
  const auto receive = ends[1]->irecv(0, 5, received);
  ends[1]->wait(*receive, at_once());
  EXPECT_EQ(received, filled(100, 1));
}

TEST(Inproc, LargeSendsCrossWhicheverIsWaitedForFirst) {
  auto ends = make_inproc_group(2);
  const auto exchange = [&](int rank) {
    const auto out = filled(large, rank + 1);
    auto in = filled(large, 0);
    const auto receive = ends[rank]->irecv(1 - rank, 1, in);
    const auto send = ends[rank]->isend(1 - rank, 1, out);
    ends[rank]->wait(*send, soon());
    ends[rank]->wait(*receive, soon());
    return in;
  };
  auto other = std::async(std::launch::async, exchange, 1);
  EXPECT_EQ(exchange(0), filled(large, 2));
  EXPECT_EQ(other.get(), filled(large, 1));
}

TEST(Inproc, ReceivesMatchInTheOrderTheyWereStarted) {
  auto ends = make_inproc_group(2);
  auto first = filled(8, 0);
  auto second = filled(8, 0);
  const auto receive_first = ends[1]->irecv(0, 1, first);
  const auto receive_second = ends[1]->irecv(0, 1, second);
  send_small(*ends[0], 1, 1);
  send_small(*ends[0], 1, 2);
  ends[1]->wait(*receive_second, at_once());
  ends[1]->wait(*receive_first, at_once());
  EXPECT_EQ(first, filled(8, 1));
  EXPECT_EQ(second, filled(8, 2));
}

TEST(Inproc, WhatWasSentBeforeACloseIsReceivedAfterIt) {
  auto ends = make_inproc_group(2);
  send_small(*ends[0], 1, 3);
  ends[0]->close();

  auto received = filled(8, 0);
  const auto receive = ends[1]->irecv(0, 1, received);
  ends[1]->wait(*receive, at_once());
  EXPECT_EQ(received, filled(8, 3));

  const auto none = ends[1]->irecv(0, 1, received);
  const auto error = error_of([&] { ends[1]->wait(*none, soon()); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::peer_lost);
  EXPECT_EQ(error->rank(), 0);
}

TEST(Inproc, LargeSendNobodyTakesTimesOutAndItsBytesAreLeftAlone) {
  auto ends = make_inproc_group(2);
  {
    const auto short_lived = filled(large, 1);
    const auto send = ends[0]->isend(1, 9, short_lived);
    const auto error = error_of([&] { ends[0]->wait(*send, at_once()); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::timeout);
    EXPECT_EQ(error->rank(), 1);
    EXPECT_NE(std::string(error->what()).find("tag 9"), std::string::npos) << error->what();
  }
  auto received = filled(large, 0);
  const auto receive = ends[1]->irecv(0, 9, received);
  EXPECT_TRUE(error_of([&] { ends[1]->wait(*receive, at_once()); }));
}

TEST(Inproc, CloseWithdrawsReceivesFromSenders) {
  auto ends = make_inproc_group(2);
  {
    auto short_lived = filled(8, 0);
    const auto receive = ends[1]->irecv(0, 1, short_lived);
    ends[1]->close();
  }
  const auto error = error_of([&] { send_small(*ends[0], 1, 1); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::peer_lost);
  EXPECT_EQ(error->rank(), 1);
}

TEST(Inproc, AFailedPeerStaysFailedWithTheFirstError) {
  auto ends = make_inproc_group(2);
  auto received = filled(8, 0);
  const auto receive = ends[1]->irecv(0, 1, received);
  const auto first = error_of([&] { ends[1]->wait(*receive, at_once()); });
  ASSERT_TRUE(first);
  EXPECT_EQ(first->code(), ErrorCode::timeout);

  send_small(*ends[0], 1, 1);
  const auto later = error_of([&] { ends[1]->irecv(0, 1, received); });
  ASSERT_TRUE(later);
  EXPECT_STREQ(later->what(), first->what());
}

TEST(Inproc, RefusesRanksOutsideTheGroup) {
  auto ends = make_inproc_group(2);
  const auto error = error_of([&] { ends[0]->isend(2, 1, {}); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::invalid);
  EXPECT_TRUE(error_of([] { make_inproc_group(0); }));
}

}  // namespace
}  // namespace cohort::transport
