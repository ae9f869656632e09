// Collectives through stages in shared memory, on memory that ranks do not share: every round of
// them, sizes around the edges of pieces, and ranks that leave.

#include "collective/host/host_exchange.h"

#include <cohort/error.h>
#include <gmock/gmock.h>

#include <functional>
#include <latch>
#include <thread>

#include "os/memory.h"

namespace cohort::collective {
namespace {

using ::testing::Each;

constexpr std::size_t kPieceOfFloats = (128 << 10) / sizeof(float);

Deadline exchange_deadline() {
  return Deadline::in_seconds(60);
}

void with_ranks(int world, const std::function<void(HostExchange&)>& body) {
  const os::PrivateMemory memory(HostExchange::bytes_needed(world));
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < world; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        HostExchange exchange(rank, world, memory.bytes(), {}, os::WaitPolicy::for_ranks(world));
        body(exchange);
      } catch (const Error& error) {
        ADD_FAILURE() << "rank " << rank << ": " << error.what();
      }
    });
  }
}

float given_value(int rank, std::size_t i) {
  return static_cast<float>((i * 31 + static_cast<std::size_t>(rank) * 7) % 1013);
}

std::vector<float> floats_of(int rank, std::size_t size) {
  std::vector<float> all(size);
  for (std::size_t i = 0; i < size; ++i) all[i] = given_value(rank, i);
  return all;
}

/// Whether these are the sums over all ranks of what stands at `begin` and behind it.
bool are_sums(std::span<const float> values, int world, std::size_t begin) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    float sum = 0;
    for (int rank = 0; rank < world; ++rank) sum += given_value(rank, begin + i);
    if (values[i] != sum) return false;
  }
  return true;
}

/// Whether these are what the rank has at `begin` and behind it.
bool are_values(std::span<const float> values, int rank, std::size_t begin) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] != given_value(rank, begin + i)) return false;
  }
  return true;
}

bool consists_of(std::span<const std::byte> bytes, int value) {
  return std::ranges::count(bytes, static_cast<std::byte>(value)) == std::ssize(bytes);
}

/// None, one, around a piece, several pieces.
std::vector<std::size_t> sizes() {
  return {0, 1, 3, kPieceOfFloats - 1, kPieceOfFloats, kPieceOfFloats + 1, 2 * kPieceOfFloats + 5};
}

class HostExchangeWorlds : public ::testing::TestWithParam<int> {};

TEST_P(HostExchangeWorlds, AllReduces) {
  with_ranks(GetParam(), [](HostExchange& exchange) {
    for (const std::size_t size : sizes()) {
      auto values = floats_of(exchange.rank(), size);
      exchange.all_reduce(values, Reduction::sum, 1, exchange_deadline());
      ASSERT_TRUE(are_sums(values, exchange.world(), 0)) << size;
    }
  });
}

TEST_P(HostExchangeWorlds, DividesOnce) {
  with_ranks(GetParam(), [](HostExchange& exchange) {
    std::vector<double> values(10'000, 6.0 * (exchange.rank() + 1));
    exchange.all_reduce(values, Reduction::max, 2, exchange_deadline());
    EXPECT_THAT(values, Each(3.0 * exchange.world()));
  });
}

TEST_P(HostExchangeWorlds, ReduceScatters) {
  with_ranks(GetParam(), [](HostExchange& exchange) {
    const auto world = static_cast<std::size_t>(exchange.world());
    const auto rank = static_cast<std::size_t>(exchange.rank());
    for (const std::size_t size : sizes()) {
      auto given = floats_of(exchange.rank(), world * size);
      std::vector<float> out(size);
      exchange.reduce_scatter(given, out, Reduction::sum, 1, exchange_deadline());
      ASSERT_TRUE(are_sums(out, exchange.world(), rank * size)) << size;
      ASSERT_TRUE(are_values(given, exchange.rank(), 0)) << "what was given stays";
    }
  });
}

TEST_P(HostExchangeWorlds, BroadcastsFromEveryRank) {
  with_ranks(GetParam(), [](HostExchange& exchange) {
    for (const std::size_t size : sizes()) {
      for (int root = 0; root < exchange.world(); ++root) {
        auto values = floats_of(exchange.rank(), size);
        exchange.broadcast(std::as_writable_bytes(std::span(values)), root, exchange_deadline());
        ASSERT_TRUE(are_values(values, root, 0)) << size;
      }
    }
  });
}

TEST_P(HostExchangeWorlds, GathersPartsOfAnySize) {
  with_ranks(GetParam(), [](HostExchange& exchange) {
    for (const std::size_t size : sizes()) {
      const auto size_of_rank = [&](int rank) { return size * static_cast<std::size_t>(rank % 3); };
      const auto given = floats_of(exchange.rank(), size_of_rank(exchange.rank()));
      std::vector<std::vector<float>> parts;
      std::vector<std::span<std::byte>> taken;
      for (int rank = 0; rank < exchange.world(); ++rank) parts.emplace_back(size_of_rank(rank));
      for (auto& part : parts) taken.push_back(std::as_writable_bytes(std::span(part)));
      exchange.all_gather(std::as_bytes(std::span(given)), taken, exchange_deadline());
      for (int rank = 0; rank < exchange.world(); ++rank) {
        ASSERT_TRUE(are_values(parts[static_cast<std::size_t>(rank)], rank, 0));
      }
    }
  });
}

TEST_P(HostExchangeWorlds, ExchangesParts) {
  with_ranks(GetParam(), [](HostExchange& exchange) {
    const auto world = static_cast<std::size_t>(exchange.world());
    for (const std::size_t size : sizes()) {
      const auto given = floats_of(exchange.rank(), world * size);
      std::vector<float> taken(world * size);
      exchange.all_to_all(std::as_bytes(std::span(given)), std::as_writable_bytes(std::span(taken)),
                          exchange_deadline());
      for (std::size_t from = 0; from < world; ++from) {
        const auto mine = static_cast<std::size_t>(exchange.rank()) * size;
        ASSERT_TRUE(
            are_values(std::span(taken).subspan(from * size, size), static_cast<int>(from), mine));
      }
    }
  });
}

// Each round's records stay until the next: a rank that is quick must not write over what a slow one
// reads.
TEST_P(HostExchangeWorlds, ShowsRecordsAndContentToAll) {
  with_ranks(GetParam(), [](HostExchange& exchange) {
    for (int round = 0; round < 60; ++round) {
      const std::vector<std::byte> record(HostExchange::kRecordBytes,
                                          static_cast<std::byte>(round + exchange.rank()));
      const std::vector<std::byte> content(HostExchange::kSmallBytes,
                                           static_cast<std::byte>(round - exchange.rank()));
      exchange.begin(record, content, exchange_deadline());
      for (int rank = 0; rank < exchange.world(); ++rank) {
        const std::span shown(exchange.content_of(rank), HostExchange::kSmallBytes);
        ASSERT_TRUE(consists_of(exchange.record_of(rank), round + rank));
        ASSERT_TRUE(consists_of(shown, round - rank));
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Worlds, HostExchangeWorlds, ::testing::Values(1, 2, 3, 5));

TEST(HostExchange, NamesARankThatLeaves) {
  with_ranks(3, [](HostExchange& exchange) {
    std::vector<float> values(4 * kPieceOfFloats);
    exchange.all_reduce(values, Reduction::sum, 1, exchange_deadline());
    if (exchange.rank() == 1) return;
    try {
      while (true) exchange.all_reduce(values, Reduction::sum, 1, exchange_deadline());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::peer_lost);
    }
  });
}

TEST(HostExchange, EndsItsOwnWaitWhereAnotherThreadLeaves) {
  std::latch ended(1);
  with_ranks(2, [&](HostExchange& exchange) {
    exchange.begin({}, {}, exchange_deadline());
    if (exchange.rank() == 1) return ended.wait();
    const std::jthread leaver([&] { exchange.leave(); });
    try {
      exchange.begin({}, {}, exchange_deadline());
      ADD_FAILURE() << "nobody else came";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::cancelled) << error.what();
    }
    ended.count_down();
  });
}

}  // namespace
}  // namespace cohort::collective
