#pragma once

#include <cohort/error.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/fail.h"
#include "cluster/store.h"
#include "group/communicator.h"
#include "transport/composed/composed.h"
#include "transport/gloo/gloo.h"
#include "transport/inproc/inproc.h"
#include "transport/shm/shm.h"

namespace cohort::group {

/// For tests: groups of ranks that are threads, on every engine, and arrays of every type whose
/// elements are written as doubles.

using collective::ElementType;
using collective::Reduction;

inline Deadline soon() {
  return Deadline::in_seconds(120);
}

/// Where the ranks of a test meet.
class MeetingPlace {
 public:
  using Factory = std::unique_ptr<transport::Engine> (*)(const transport::EngineOptions&,
                                                         const transport::Peers&, cluster::Store&,
                                                         Deadline);
  /// Null: ranks that are threads of one process. `hosts` is the host of every rank.
  MeetingPlace(Factory factory, std::vector<int> hosts)
      : factory_(factory), hosts_(std::move(hosts)), hub_(static_cast<int>(hosts_.size())) {}

  Membership membership(int rank) {
    const transport::EngineOptions options{
        .name = "", .rank = rank, .world = world(), .address = "127.0.0.1", .cores = 2};
    std::unique_ptr<transport::Engine> engine =
        factory_ == nullptr ? hub_.engine(rank)
                            : factory_(options, {.rank = rank, .hosts = hosts_}, store_, soon());
    return {.connect = [this] { return std::make_unique<cluster::PrefixStore>(store_, "board/"); },
            .engine = std::move(engine)};
  }

  int world() const { return static_cast<int>(hosts_.size()); }
  cluster::MemoryStore& store() { return store_; }

 private:
  const Factory factory_;
  const std::vector<int> hosts_;
  cluster::MemoryStore store_;
  transport::InprocHub hub_;
};

/// A way for ranks to be in a group; the suites run on each.
struct TestEngine {
  std::string name;
  MeetingPlace::Factory factory = nullptr;
  bool pairs = false;  ///< Two ranks on each host; else all on one.

  MeetingPlace place(int world) const {
    std::vector<int> hosts;
    for (int rank = 0; rank < world; ++rank) hosts.push_back(pairs ? rank / 2 : 0);
    return {factory, hosts};
  }
};

// To test an engine, add a line.
inline const std::vector<TestEngine>& test_engines() {
  static const std::vector<TestEngine> engines = {
      {"inproc"},
      {"shm", transport::make_shm_engine},
      {"gloo", transport::make_gloo_engine},
      {"composed", transport::make_composed_engine, true},
  };
  return engines;
}

inline CommunicatorOptions quick_options() {
  return {
      .timeout = std::chrono::seconds(120), .patience = std::chrono::milliseconds(20), .cores = 2};
}

using GroupBody = std::function<void(Communicator&)>;

/// Runs `body` on a thread for every rank. What a rank throws fails the test.
inline void run_group(const TestEngine& engine, int world, const GroupBody& body) {
  MeetingPlace place = engine.place(world);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < world; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        Communicator group(place.membership(rank), quick_options());
        body(group);
      } catch (const std::exception& error) {
        ADD_FAILURE() << engine.name << ", rank " << rank << " of " << world << ": "
                      << error.what();
      }
    });
  }
}

/// The Error that `action` ends in.
template <class Action>
Error failure_of(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no Error";
  return Error(ErrorCode::unsupported, "nothing was thrown");
}

inline constexpr std::array kTypes = {ElementType::f32,    ElementType::f64, ElementType::bf16,
                                      ElementType::i32,    ElementType::i64, ElementType::u8,
                                      ElementType::boolean};

/// bfloat16, of numbers that it can hold.
struct TestBFloat16 {
  explicit TestBFloat16(double value)
      : bits(std::bit_cast<std::uint32_t>(static_cast<float>(value)) >> 16) {}
  std::uint16_t bits;
};

/// Writes value(i) to every place i.
template <class T, class Value>
void fill_as(std::span<std::byte> bytes, Value&& value) {
  for (std::size_t i = 0; i < bytes.size() / sizeof(T); ++i) {
    reinterpret_cast<T*>(bytes.data())[i] = static_cast<T>(value(i));
  }
}

/// An array with memory of its own.
struct OwnArray : Array {
  OwnArray(ElementType of, std::vector<std::int64_t> sizes) {
    type = of;
    shape = std::move(sizes);
    // Of doubles, so that it is aligned for all types.
    const std::size_t size = bytes_of(type, shape);
    const auto memory = std::make_shared<std::vector<double>>((size + 7) / 8);
    bytes = std::as_writable_bytes(std::span(*memory)).first(size);
    hold = memory;
  }

  /// In memory that somebody else has made.
  explicit OwnArray(Array array) : Array(std::move(array)) {}

  /// Element i is value(i).
  template <class Value>
  OwnArray& fill(Value&& value) {
    switch (type) {
      case ElementType::f32:
        fill_as<float>(bytes, value);
        break;
      case ElementType::f64:
        fill_as<double>(bytes, value);
        break;
      case ElementType::bf16:
        fill_as<TestBFloat16>(bytes, value);
        break;
      case ElementType::i32:
        fill_as<std::int32_t>(bytes, value);
        break;
      case ElementType::i64:
        fill_as<std::int64_t>(bytes, value);
        break;
      case ElementType::u8:
        fill_as<std::uint8_t>(bytes, value);
        break;
      case ElementType::boolean:
      case ElementType::byte:
        fill_as<bool>(bytes, value);
    }
    return *this;
  }
};

inline OwnArray array_of(ElementType type, std::size_t size) {
  return {type, {static_cast<std::int64_t>(size)}};
}

/// float32, each element the same.
inline OwnArray floats(std::size_t size, double value) {
  return array_of(ElementType::f32, size).fill([=](std::size_t) { return value; });
}

inline bool same(const Array& a, const Array& b) {
  return a.type == b.type && a.shape == b.shape && std::ranges::equal(a.bytes, b.bytes);
}

inline std::string engine_name(const ::testing::TestParamInfo<TestEngine>& test) {
  return test.param.name;
}

}  // namespace cohort::group
