// The receiver's end of remote boxes without a network: calls are made up, so the test decides what
// is answered, held and taken when.

#include "gossip/boxes/remote_box.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "gossip/boxes/boxes_test_support.h"

namespace cohort::gossip {
namespace {

/// A call that never was on a network. Answers and failures are counted in `answered` and `failed`.
class FakeCall : public rpc::RpcCall {
 public:
  struct Counts {
    std::atomic<int> answered = 0;
    std::atomic<int> failed = 0;
    std::atomic<double> returned = 0;
  };

  FakeCall(const RemoteHeader& header, float value, Counts& counts) : counts_(counts) {
    request_.resize(sizeof(header) + sizeof(value));
    std::memcpy(request_.data(), &header, sizeof(header));
    std::memcpy(request_.data() + sizeof(header), &value, sizeof(value));
  }

  std::span<const std::byte> request() const override { return request_; }
  const cluster::Member& caller() const override { return caller_; }
  void reply(const rpc::MessageParts& parts, std::function<void()>) override {
    ASSERT_EQ(parts.size(), 1U);
    counts_.returned = counts_.returned + read_put_reply(parts[0]).returned;
    ++counts_.answered;
  }
  void fail(const Error&) override { ++counts_.failed; }

 private:
  rpc::Bytes request_;
  cluster::Member caller_;
  Counts& counts_;
};

RemoteHeader header_of(int from, double weight, WhenFull when) {
  return {.from = from, .weight = weight, .when = when};
}

float float_of(const Box::Taken& taken) {
  float value = 0;
  EXPECT_EQ(taken.message().size(), sizeof(value));
  std::memcpy(&value, taken.message().data(), sizeof(value));
  return value;
}

struct OneReceiver {
  IncomingBoxes boxes{{3}, 64};
  FakeCall::Counts counts;

  void put(const RemoteHeader& header, float value) {
    std::unique_ptr<rpc::RpcCall> call = std::make_unique<FakeCall>(header, value, counts);
    boxes.put(header, call);
  }
};

TEST(IncomingBoxes, AnswerWhatIsInTheBox) {
  OneReceiver one;
  one.put(header_of(3, 0.5, WhenFull::replace), 7);
  EXPECT_EQ(one.counts.answered, 1);
  const auto taken = one.boxes.take(3);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->weight(), 0.5);
  EXPECT_EQ(float_of(*taken), 7);
}

TEST(IncomingBoxes, HoldWhatFindsTheBoxFullUntilItIsTaken) {
  OneReceiver one;
  one.put(header_of(3, 1, WhenFull::refuse), 1);
  one.put(header_of(3, 1, WhenFull::refuse), 2);
  EXPECT_EQ(one.counts.answered, 1);
  EXPECT_EQ(float_of(*one.boxes.take(3)), 1);
  EXPECT_EQ(one.counts.answered, 1);
  EXPECT_EQ(float_of(*one.boxes.take(3)), 2);
  EXPECT_EQ(one.counts.answered, 2);
  EXPECT_FALSE(one.boxes.take(3));
}

TEST(IncomingBoxes, HoldWhatFindsTheReaderBusy) {
  OneReceiver one;
  one.put(header_of(3, 1, WhenFull::replace), 1);
  {
    const auto taken = one.boxes.take(3);
    one.put(header_of(3, 1, WhenFull::replace), 2);
    EXPECT_EQ(float_of(*taken), 1);
    EXPECT_EQ(one.counts.answered, 1);
  }
  EXPECT_EQ(float_of(*one.boxes.take(3)), 2);
  EXPECT_EQ(one.counts.answered, 2);
}

TEST(IncomingBoxes, RefuseStrangers) {
  OneReceiver one;
  EXPECT_THROW(one.put(header_of(2, 1, WhenFull::replace), 1), Error);
}

// The weight of a parcel that it has replaced is one that it had got.
TEST(OutgoingBoxes, LoseAPeerThatGivesBackMoreThanItGot) {
  const cluster::Pass pass = cluster::Pass::draw();
  std::atomic<double> returned = 0;
  const rpc::RpcServer peer("unix", pass, [&](std::unique_ptr<rpc::RpcCall> call) {
    const PutReply reply{.returned = returned};
    call->reply({bytes_of(reply)});
  });
  OutgoingBox box({.from = 0,
                   .to = 3,
                   .address = peer.address(),
                   .pass = pass,
                   .message_bytes = 64,
                   .timeout = std::chrono::seconds(30)});
  const float value = 1;
  const auto put = [&](double weight) {
    box.put({.weight = weight, .message = std::as_bytes(std::span(&value, 1))}, WhenFull::replace);
    return eventually([&] { return box.idle(); });
  };
  ASSERT_TRUE(put(0.5));
  returned = 0.5;
  ASSERT_TRUE(put(0.25));
  EXPECT_FALSE(box.lost());
  EXPECT_EQ(box.returned(), 0.5);
  ASSERT_TRUE(put(0.25));
  EXPECT_TRUE(box.lost());
  EXPECT_EQ(box.returned(), 0);
}

// A server's thread puts the next parcel when the last was answered, as a sender does.
TEST(IncomingBoxes, LoseNoWeightBetweenThreads) {
  for (const auto when : {WhenFull::replace, WhenFull::add, WhenFull::refuse}) {
    constexpr int kParcels = 2000;
    OneReceiver one;
    std::jthread server([&] {
      for (int i = 0; i < kParcels; ++i) {
        one.put(header_of(3, 1, when), static_cast<float>(i));
        ASSERT_TRUE(eventually([&] { return one.counts.answered == i + 1; }));
      }
    });
    double weight = 0;
    EXPECT_TRUE(eventually([&] {
      if (const auto taken = one.boxes.take(3)) weight += taken->weight();
      return weight + one.counts.returned == kParcels;
    }));
    EXPECT_EQ(one.counts.failed, 0);
  }
}

}  // namespace
}  // namespace cohort::gossip
