// A model with a table among its tensors, to servers and back: where everything stands, and that
// padding stays zero.

#include "strategy/servers/server_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tensor/table_rows.h"

namespace cohort::strategy {
namespace {

using ::testing::Each;

// Three tensors, the second of them a table, none of a size that fills its last line.
struct TableNet : torch::nn::Module {
  TableNet() {
    first = register_parameter("first", torch::zeros({3, 7}));
    table = register_parameter("table", torch::zeros({5, 4}));
    last = register_parameter("last", torch::zeros({2}));
  }
  torch::Tensor forward(const torch::Tensor& input) { return input; }

  torch::Tensor first, table, last;
};

class TableModel : public testing::Test {
 protected:
  // 1, 2, 3, … in the order of a TrainingState, zeros in the padding.
  std::vector<float> numbered() {
    const tensor::FlatLayout layout = tensor::ModelLayout::of(*model_).parameters;
    std::vector<float> values(layout.size);
    float next = 0;
    for (const tensor::FlatEntry& entry : layout.entries) {
      for (std::size_t i = 0; i < entry.count; ++i) values[entry.offset + i] = ++next;
    }
    return values;
  }

  std::shared_ptr<TableNet> net_ = std::make_shared<TableNet>();
  std::unique_ptr<Model> model_ = wrap(net_);
  tensor::TableMark mark_{net_->table};
};

TEST_F(TableModel, StandsApartOnServers) {
  const ServerOrder order(*model_, tensor::Tables::apart);
  EXPECT_EQ(order.floats(), 32U + 32 + 16);
  EXPECT_EQ(order.dense(), 32U + 16);
  server::ServerModel servers;
  to_servers(order, numbered(), servers, kParameters);
  ASSERT_EQ(servers.tables.size(), 1U);
  EXPECT_EQ(servers.tables[0].values.size(), 20U);
  EXPECT_EQ(servers.tables[0].values.front(), 22);
  EXPECT_EQ(servers.tables[0].values.back(), 41);
  EXPECT_EQ(servers.dense.values[20], 21);
  EXPECT_EQ(servers.dense.values[32], 42);
  EXPECT_EQ(servers.dense.values[33], 43);
}

TEST_F(TableModel, ComesBackAsItWas) {
  for (const tensor::Tables place : {tensor::Tables::apart, tensor::Tables::among_parameters}) {
    const ServerOrder order(*model_, place);
    for (const int slot : {kParameters, 0, 1}) {
      server::ServerModel servers;
      to_servers(order, numbered(), servers, slot);
      std::vector<float> back(3, 7.0F);
      from_servers(order, servers, slot, back);
      EXPECT_EQ(back, numbered());
    }
  }
}

TEST_F(TableModel, LeavesNothingOldInThePadding) {
  const ServerOrder order(*model_, tensor::Tables::apart);
  std::vector<float> state(order.floats(), 99.0F);
  const std::vector<float> dense(order.dense(), 1.0F);
  const std::vector<float> table(20, 1.0F);
  order.put_dense(dense, state);
  order.put_table(0, table, state);
  EXPECT_THAT(std::vector(state.begin() + 21, state.begin() + 32), Each(0.0F));
  EXPECT_THAT(std::vector(state.begin() + 52, state.begin() + 64), Each(0.0F));
  EXPECT_THAT(std::vector(state.begin() + 66, state.end()), Each(0.0F));
}

TEST_F(TableModel, HasZerosInSlotsThatServersHaveNot) {
  const ServerOrder order(*model_, tensor::Tables::apart);
  server::ServerModel servers;
  to_servers(order, numbered(), servers, kParameters);
  std::vector<float> slot;
  from_servers(order, servers, 0, slot);
  EXPECT_EQ(slot.size(), order.floats());
  EXPECT_THAT(slot, Each(0.0F));
}

}  // namespace
}  // namespace cohort::strategy
