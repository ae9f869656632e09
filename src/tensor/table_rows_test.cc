#include "tensor/table_rows.h"

#include <gmock/gmock.h>

namespace cohort {
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

}  // namespace
}  // namespace cohort
