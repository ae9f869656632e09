// Proves what layers find by a parameter's tensor, and that they find it exactly as long as its
// owner lives: marks, the rows of a table, and the registry itself where a tensor has two entries
// one after the other. And that a StepScope gives the thread its context back.
#include "tensor/tensor_registry.h"

#include <gmock/gmock.h>

#include <thread>

#include "tensor/gradient_sink.h"
#include "tensor/step_context.h"
#include "tensor/table_rows.h"

namespace cohort::tensor {
namespace {

using testing::ElementsAre;

TEST(TableRows, AddsUpTheGradientsOfTheRowsThatWereTouched) {
  TableRows table(torch::zeros({10, 2}), false, [](auto) {});
  const std::vector<std::int64_t> ids = {7, 2, 7};
  const std::vector<float> gradients = {1, 2, 3, 4, 5, 6};
  table.begin_step();
  table.add_gradients(ids, gradients);
  EXPECT_THAT(table.touched().rows, ElementsAre(2U, 7U));
  EXPECT_THAT(table.touched().gradients, ElementsAre(3, 4, 6, 8));
  table.begin_step();
  EXPECT_TRUE(table.touched().rows.empty());
}

TEST(TableRows, FetchesEachNeededRowOnce) {
  std::vector<std::uint32_t> fetched;
  TableRows table(torch::zeros({10, 2}), false,
                  [&](auto rows) { fetched.assign(rows.begin(), rows.end()); });
  const std::vector<std::int64_t> ids = {9, 0, 9, 3};
  table.need(ids);
  EXPECT_THAT(fetched, ElementsAre(0U, 3U, 9U));
}

TEST(TableRows, IsFoundByItsParameterWhileItLives) {
  torch::Tensor parameter = torch::ones({3, 2});
  EXPECT_EQ(TableRows::of(parameter), nullptr);
  {
    const TableRows table(parameter, true, [](auto) {});
    EXPECT_EQ(TableRows::of(parameter), &table);
    EXPECT_EQ(parameter.data_ptr<float>(), table.values().data());
    EXPECT_EQ(parameter.sum().item<float>(), 6);
  }
  EXPECT_EQ(TableRows::of(parameter), nullptr);
}

TEST(TableMark, CountsWhileItLives) {
  const torch::Tensor parameter = torch::ones({3, 2});
  {
    const TableMark mark(parameter);
    EXPECT_TRUE(TableMark::has(parameter));
  }
  EXPECT_FALSE(TableMark::has(parameter));
}

TEST(ProductMark, CountsWhileItLives) {
  const torch::Tensor weight = torch::zeros({2, 3});
  {
    const ProductMark mark(weight, 5);
    EXPECT_EQ(ProductMark::rows_per_sample(weight), 5);
    EXPECT_EQ(ProductMark::rows_per_sample(torch::zeros({2, 3})), std::nullopt);
  }
  EXPECT_EQ(ProductMark::rows_per_sample(weight), std::nullopt);
}

TEST(TensorRegistry, TheNewestEntryCountsAndTheEndOfAnOlderOneLeavesItAlone) {
  const torch::Tensor parameter = torch::zeros({2});
  auto older = std::make_unique<GradientSink>(parameter, torch::zeros({2}));
  const GradientSink newer(parameter, torch::zeros({2}));
  EXPECT_EQ(GradientSink::of(parameter), &newer);
  older.reset();
  EXPECT_EQ(GradientSink::of(parameter), &newer);
}

TEST(TensorRegistry, AnEntryKeepsItsTensorSoThatNoOtherGetsItsAddress) {
  torch::Tensor parameter = torch::zeros({2});
  const c10::TensorImpl* address = parameter.unsafeGetTensorImpl();
  const ProductMark mark(parameter, 3);
  parameter.reset();
  const torch::Tensor other = torch::zeros({2});
  EXPECT_NE(other.unsafeGetTensorImpl(), address);
  EXPECT_EQ(ProductMark::rows_per_sample(other), std::nullopt);
}

TEST(StepScope, GivesTheThreadItsContextBackAndOthersNothing) {
  {
    const StepScope scope({.seed = 7, .step = 3, .sum_over_workers = {}});
    EXPECT_EQ(step_context().step, 3);
    std::thread([] { EXPECT_EQ(step_context().step, 0); }).join();
  }
  EXPECT_EQ(step_context().seed, 0U);
}

}  // namespace
}  // namespace cohort::tensor
