// A server that has no memory for a request refuses it before anything is changed, whichever way it
// came, and goes on.

#include <gmock/gmock.h>

#include "base/failpoint.h"
#include "server/server_test_support.h"

namespace cohort::server {
namespace {

using testing::Each;
using testing::HasSubstr;

/// Two workers of one server; the second asks when there is no memory at `place`.
void expect_refusal(const std::string& place, bool memory) {
  SCOPED_TRACE(place);
  Servers running(1, 2, ShardRules::Consistency::async);
  {
    ServerClient good(client_options(0, 1, 4, memory), running.store);
    ServerClient asks(client_options(1, 1, 4, memory), running.store);
    good.initialise(model_of(std::vector<float>(4, 5)));
    std::ranges::fill(good.outgoing(), 1.0F);
    std::ranges::fill(asks.outgoing(), 1.0F);
    set_failpoints(place + "=no-memory");
    try {
      asks.exchange(push_and_pull());
      ADD_FAILURE() << "there was memory";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::no_space);
      EXPECT_THAT(error.what(), HasSubstr("no memory left"));
    }
    good.exchange(push_and_pull());
    EXPECT_THAT(good.incoming(), Each(4.0F)) << "of one push";
    good.close();
    asks.close();
  }
  EXPECT_EQ(running.results().front().counts.applied, 1U);
  set_failpoints("");
}

TEST(ServerWithoutMemory, RefusesACallOfItsDoor) {
  expect_refusal("server.before-queueing", false);
}

TEST(ServerWithoutMemory, RefusesAnExchangeThatItHasNoRoomToAnswer) {
  expect_refusal("server.before-completing", false);
}

TEST(ServerWithoutMemory, RefusesWhatItCannotDecode) {
  for (const bool memory : {false, true}) expect_refusal("server.before-checking", memory);
}

/// Before a model is there nobody knows how large messages may be; with it everybody does.
TEST(ServerMessages, AreAsLargeAsTheModelNeeds) {
  constexpr std::size_t kDense = 1 << 16;
  Servers running(1, 1, ShardRules::Consistency::async,
                  [](ServerOptions& options) { options.message_bytes = 4096; });
  ClientOptions options = client_options(0, 1, kDense, false);
  options.model_part_bytes = 2000;
  ServerClient client(options, running.store);
  const auto push = [&] { client.exchange(push_and_pull()); };
  client.initialise(model_of(std::vector<float>(kDense, 1)));
  push();
  EXPECT_THAT(client.incoming(), Each(1.0F));
  rpc::RpcClient raw(
      server_address_from(running.store.get(server_key(0), Deadline::in_seconds(30))).rpc,
      running.store.pass(), worker_member(0, 0));
  const rpc::Bytes large(4096 + 2 * kDense * sizeof(float) + 1);
  EXPECT_THAT([&] { raw.call({large}, Deadline::in_seconds(30)); },
              testing::ThrowsMessage<Error>(HasSubstr("bytes are the most allowed")));
  client.close();
}

}  // namespace
}  // namespace cohort::server
