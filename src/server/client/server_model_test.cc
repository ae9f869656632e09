// The whole model as workers give and read it, and which group's messages a server takes.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>

#include "base/random.h"
#include "server/server_test_support.h"
#include "server/shard/shard_test_support.h"

namespace cohort::server {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::size_t kDense = 5000;
constexpr std::uint32_t kRows = 70, kWidth = 3;
constexpr std::uint64_t kVersion = 41;

ServerModel::Part random_part(std::size_t floats, std::size_t slots, Random& random) {
  ServerModel::Part part;
  part.values = random_floats(floats, random);
  for (std::size_t slot = 0; slot < slots; ++slot) {
    part.slots.push_back(random_floats(floats, random));
  }
  return part;
}

/// With the two slots of Adam.
ServerModel random_model() {
  Random random(3);
  ServerModel model;
  model.dense = random_part(kDense, 2, random);
  model.tables.push_back(random_part(kRows * kWidth, 2, random));
  model.version = kVersion;
  model.work = {.next = 9, .parts = 2, .again = {{2, 1}, {3, 1}}};
  return model;
}

void use_adam_and_a_board(ServerOptions& options) {
  options.rules.optimizer.kind = "adam";
  if (options.server == 0) {
    options.board = cluster::WorkBoard::Options{.left = {.parts = 2}, .end_step = 10};
  }
}

ClientOptions with_table(ClientOptions options) {
  options.tables = {{kRows, kWidth}};
  return options;
}

void expect_equal(const ServerModel::Part& one, const ServerModel::Part& other) {
  EXPECT_EQ(one.values, other.values);
  EXPECT_EQ(one.slots, other.slots);
}

class WholeModel : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Ways, WholeModel, testing::Bool(),
                         [](const auto& test) { return test.param ? "memory" : "grpc"; });

TEST_P(WholeModel, IsReadAsItWasGiven) {
  for (const int servers : {1, 3}) {
    Servers running(servers, 1, ShardRules::Consistency::async, use_adam_and_a_board);
    ServerClient client(with_table(client_options(0, servers, kDense, GetParam())), running.store);
    EXPECT_FALSE(client.has_model());
    const ServerModel given = random_model();
    client.initialise(given);
    EXPECT_TRUE(client.has_model());
    EXPECT_EQ(client.version(), kVersion);
    ServerModel read;
    for (int time = 0; time < 2; ++time) {
      client.read_model(read);
      expect_equal(read.dense, given.dense);
      ASSERT_EQ(read.tables.size(), 1U);
      expect_equal(read.tables.front(), given.tables.front());
      EXPECT_EQ(read.version, kVersion);
      EXPECT_EQ(read.work.next, 9);
      EXPECT_EQ(read.work.parts, 2);
      EXPECT_THAT(read.work.again, ElementsAre(cluster::Claim{2, 1}, cluster::Claim{3, 1}));
    }
    client.exchange(pull_only());
    EXPECT_TRUE(std::ranges::equal(client.incoming(), given.dense.values));
    client.close();
  }
}

TEST_P(WholeModel, TravelsInPartsThatFitAMessage) {
  constexpr std::size_t kLimit = 4096;
  constexpr std::size_t kEven = 521 * sizeof(float);  // Thirty such parts make the whole.
  static_assert((kDense + kRows * kWidth) * 3 == 30 * 521);
  for (const std::size_t part :
       {std::size_t{400}, std::size_t{999}, kEven - sizeof(float), kEven, kEven + sizeof(float)}) {
    SCOPED_TRACE(part);
    Servers running(1, 1, ShardRules::Consistency::async, [&](ServerOptions& options) {
      use_adam_and_a_board(options);
      options.message_bytes = kLimit;
    });
    ClientOptions options = with_table(client_options(0, 1, kDense, GetParam()));
    options.model_part_bytes = part;
    ServerClient client(options, running.store);
    const ServerModel given = random_model();
    client.initialise(given);
    ServerModel read;
    client.read_model(read);
    expect_equal(read.dense, given.dense);
    expect_equal(read.tables.front(), given.tables.front());
    client.close();
  }
}

TEST_P(WholeModel, IsRefusedWhereAPartIsLargerThanAMessage) {
  Servers running(1, 1, ShardRules::Consistency::async,
                  [](ServerOptions& options) { options.message_bytes = 4096; });
  ClientOptions options = client_options(0, 1, kDense, GetParam());
  options.model_part_bytes = 5000;
  ServerClient client(options, running.store);
  EXPECT_THAT([&] { client.initialise(model_of(std::vector<float>(kDense))); },
              testing::ThrowsMessage<Error>(HasSubstr("4096 bytes are the most allowed")));
  client.close();
}

TEST_P(WholeModel, TellsWhatIsLeftToDo) {
  Servers running(2, 1, ShardRules::Consistency::async, use_adam_and_a_board);
  ServerClient client(with_table(client_options(0, 2, kDense, GetParam())), running.store);
  client.initialise(random_model());
  Exchange wanted;
  wanted.claim = true;
  std::vector<cluster::Claim> claims;
  for (int i = 0; i < 3; ++i) claims.push_back(client.exchange(wanted).claim.value());
  EXPECT_THAT(claims,
              ElementsAre(cluster::Claim{2, 1}, cluster::Claim{3, 1}, cluster::Claim{4, 1}));
  ServerModel model;
  client.read_model(model);
  EXPECT_EQ(model.work.next, 9) << "nothing was pushed yet";
  EXPECT_THAT(model.work.again, ElementsAre(cluster::Claim{2, 1}, cluster::Claim{3, 1}));
  client.exchange(push_and_pull());
  client.read_model(model);
  EXPECT_THAT(model.work.again, IsEmpty());
  EXPECT_EQ(model.version, kVersion + 1);
  client.close();
}

TEST_P(WholeModel, WithoutSlotsBeginsWithZeros) {
  Servers running(2, 1, ShardRules::Consistency::sync, use_adam_and_a_board);
  ServerClient client(client_options(0, 2, kDense, GetParam()), running.store);
  client.initialise(model_of(std::vector<float>(kDense, 2)));
  ServerModel model;
  client.read_model(model);
  ASSERT_EQ(model.dense.slots.size(), 2U);
  EXPECT_THAT(model.dense.slots[1], Each(0.0F));
  EXPECT_THAT(model.dense.values, Each(2.0F));
  client.close();
}

TEST_P(WholeModel, IsReadBetweenUpdatesWhileOthersPush) {
  constexpr std::size_t kMany = 200000;
  Servers running(2, 2, ShardRules::Consistency::async);
  std::atomic<bool> enough = false;
  run_workers(2, [&](int worker) {
    ServerClient client(client_options(worker, 2, kMany, GetParam()), running.store);
    if (worker == 0) client.initialise(model_of(std::vector<float>(kMany)));
    client.exchange(pull_only());
    std::ranges::fill(client.outgoing(), 1.0F);
    while (worker == 1 && !enough) client.exchange(push_and_pull());
    ServerModel model;
    for (int time = 0; worker == 0 && time < 20; ++time) {
      client.read_model(model);
      const auto half = std::span(model.dense.values).first(1000);
      EXPECT_THAT(half, Each(half.front())) << "of one server all is of the same time";
      EXPECT_GE(-half.front(), static_cast<float>(model.version));
    }
    enough = true;
  });
}

TEST_P(WholeModel, ThatDoesNotFitIsRefused) {
  // Worker 1 stays until the end, for whom the server does, too.
  Servers running(1, 2, ShardRules::Consistency::async, use_adam_and_a_board);
  ServerClient last(with_table(client_options(1, 1, kDense, GetParam())), running.store);
  const auto refusal = [&](const std::function<void(ServerModel&)>& spoil) {
    ServerClient client(with_table(client_options(0, 1, kDense, GetParam())), running.store);
    ServerModel model = random_model();
    spoil(model);
    try {
      client.initialise(model);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid);
      return std::string(error.what());
    }
    return std::string("it was taken");
  };
  EXPECT_THAT(refusal([](auto& model) { model.dense.values.pop_back(); }), HasSubstr("4999"));
  EXPECT_THAT(refusal([](auto& model) { model.tables.clear(); }), HasSubstr("0 tables"));
  EXPECT_THAT(refusal([](auto& model) { model.tables[0].slots.clear(); }), HasSubstr("in table 0"));
  EXPECT_THAT(refusal([](auto& model) { model.work.parts = 5; }), HasSubstr("5 parts"));
  EXPECT_THAT(refusal([](auto& model) {
                model.dense.slots.pop_back();
                model.tables[0].slots.pop_back();
              }),
              HasSubstr("1 optimizer slots"));
  last.initialise(random_model());
}

TEST_P(WholeModel, MessagesOfAnotherGroupAreRefused) {
  Servers running(1, 1, ShardRules::Consistency::sync,
                  [](ServerOptions& options) { options.generation = 5; });
  ClientOptions options = client_options(0, 1, kDense, GetParam());
  for (const std::int64_t generation : {4, 6}) {
    options.generation = generation;
    try {
      ServerClient(options, running.store).has_model();
      FAIL() << "A message of group " << generation << " was taken.";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::cancelled);
      EXPECT_THAT(error.what(), HasSubstr(fmt::format("this server serves group 5 of the workers, "
                                                      "the message is of group {}",
                                                      generation)));
    }
  }
  options.generation = 5;
  ServerClient client(options, running.store);
  client.initialise(model_of(std::vector<float>(kDense)));
  client.exchange(pull_only());
}

}  // namespace
}  // namespace cohort::server
