// What a call says of itself, and when calls of several ranks belong together.

#include "group/call.h"

#include <cohort/error.h>
#include <gmock/gmock.h>

#include <cstring>

namespace cohort::group {
namespace {

using collective::ElementType;
using collective::Reduction;
using ::testing::HasSubstr;

Call call_with(Operation operation, std::vector<std::vector<std::int64_t>> shapes) {
  Call call{.operation = operation, .type = ElementType::f32, .number = 3};
  for (const auto& shape : shapes) call.add_shape(shape);
  return call;
}

std::string refusal(const std::vector<Call>& calls) {
  try {
    check_agreement(calls);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid);
    return error.what();
  }
  return "";
}

TEST(Call, IsDescribedAsUsersWroteIt) {
  Call call = call_with(Operation::all_reduce, {{3, 4}});
  EXPECT_EQ(describe(call), "all_reduce (sum) of float32 [3, 4]");
  call.mean = 1;
  EXPECT_EQ(describe(call), "all_reduce (mean) of float32 [3, 4]");
  call = call_with(Operation::reduce_scatter, {{}});
  call.how = Reduction::product;
  call.type = ElementType::bf16;
  EXPECT_EQ(describe(call), "reduce_scatter (product) of bfloat16 []");
  call = call_with(Operation::broadcast, {{2}, {3}});
  call.peer = 1;
  EXPECT_EQ(describe(call), "broadcast from rank 1 of 2 tensors, the first float32 [2]");
  call = call_with(Operation::send, {{1, 2, 3, 4, 5, 6, 7, 8, 9}});
  call.peer = 2;
  EXPECT_EQ(describe(call), "send to rank 2 of float32 [1, 2, 3, 4, 5, 6, 7, 8, …]");
  EXPECT_EQ(describe(Call{.operation = Operation::barrier}), "barrier");
  EXPECT_EQ(describe(Call{.operation = Operation::split}), "split");
}

TEST(Call, BelongsTogetherWithItsLike) {
  const Call call = call_with(Operation::all_reduce, {{3, 4}, {5}});
  EXPECT_EQ(refusal({call}), "");
  EXPECT_EQ(refusal({call, call, call}), "");
}

TEST(Call, DiffersInWhateverMatters) {
  const Call usual = call_with(Operation::all_reduce, {{3, 4}, {5}});
  std::vector<Call> others(5, usual);
  others[0].operation = Operation::broadcast;
  others[1].type = ElementType::f64;
  others[2].how = Reduction::max;
  others[3].mean = 1;
  others[4].number = 4;
  others.push_back(call_with(Operation::all_reduce, {{4, 3}, {5}}));
  others.push_back(call_with(Operation::all_reduce, {{3, 4}, {6}}));
  others.push_back(call_with(Operation::all_reduce, {{3, 4}}));
  others.push_back(call_with(Operation::all_reduce, {{3}, {4, 5}}));
  others.push_back(call_with(Operation::all_reduce, {{12}, {5}}));
  others.push_back(call_with(Operation::all_reduce, {{3, 4}, {5, 1}}));
  for (std::size_t i = 0; i < others.size(); ++i) {
    EXPECT_NE(refusal({usual, others[i]}), "") << i;
    EXPECT_NE(refusal({others[i], usual}), "") << i;
  }
}

TEST(Call, MayDifferInRowsWhereAnyAreRight) {
  Call two{.operation = Operation::all_gather}, five = two, other = two;
  two.add_shape(std::vector<std::int64_t>{2, 7}, true);
  five.add_shape(std::vector<std::int64_t>{5, 7}, true);
  other.add_shape(std::vector<std::int64_t>{2, 8}, true);
  EXPECT_EQ(refusal({two, five}), "");
  EXPECT_NE(refusal({two, other}), "");
}

TEST(Call, NamesEveryCallOnceAndTheFirstRankThatDiffers) {
  const Call sum = call_with(Operation::all_reduce, {{3}});
  const Call barrier{.operation = Operation::barrier, .number = 3};
  EXPECT_EQ(refusal({sum, sum, barrier, barrier, sum}),
            "call 3 of the group is not the same on all ranks: rank 0 calls all_reduce (sum) of "
            "float32 [3], rank 2 calls barrier");
  try {
    check_agreement(std::vector<Call>{sum, sum, barrier});
  } catch (const Error& error) {
    EXPECT_EQ(error.rank(), 2);
  }
}

TEST(Call, OfAMessageIsComparedByWhatMoves) {
  Call sent = call_with(Operation::send, {{3}}), received = call_with(Operation::receive, {{3}});
  sent.peer = 1;
  received.peer = 0;
  EXPECT_EQ(mismatch(sent, 0, received, 1), "");
  received.type = ElementType::i32;
  EXPECT_EQ(
      mismatch(sent, 0, received, 1),
      "rank 0 calls send to rank 1 of float32 [3], but rank 1 calls recv from rank 0 of int32 "
      "[3]");
  received = call_with(Operation::receive, {{3, 1}});
  EXPECT_NE(mismatch(sent, 0, received, 1), "");
}

std::string refused_record(std::span<const std::byte> record) {
  try {
    call_in(record, 5);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::corrupt);
    EXPECT_EQ(error.rank(), 5);
    return error.what();
  }
  return "";
}

TEST(Call, IsReadFromBytesOnlyWhereThereIsOne) {
  const Call call = call_with(Operation::all_reduce, {{3}});
  const auto record = std::as_bytes(std::span(&call, 1));
  EXPECT_EQ(describe(call_in(record, 5)), describe(call));
  EXPECT_THAT(refused_record(record.first(record.size() - 1)), HasSubstr("rank 5"));
  const auto refused = [&](auto&& change) {
    Call wrong = call;
    change(wrong);
    return refused_record(std::as_bytes(std::span(&wrong, 1))) != "";
  };
  EXPECT_TRUE(refused([](Call& wrong) { wrong.magic = 0; }));
  EXPECT_TRUE(refused([](Call& wrong) { wrong.operation = static_cast<Operation>(10); }));
  EXPECT_TRUE(refused([](Call& wrong) { wrong.type = static_cast<ElementType>(8); }));
  EXPECT_TRUE(refused([](Call& wrong) { wrong.how = static_cast<Reduction>(4); }));
  EXPECT_TRUE(refused([](Call& wrong) { wrong.mean = 2; }));
  EXPECT_TRUE(refused([](Call& wrong) { wrong.dimensions = 65; }));
  EXPECT_TRUE(refused([](Call& wrong) { wrong.sizes[7] = -1; }));
  EXPECT_FALSE(refused([](Call& wrong) { wrong.number = 99; }));
}

}  // namespace
}  // namespace cohort::group
