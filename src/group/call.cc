#include "group/call.h"

#include <algorithm>
#include <cstring>

#include "base/fail.h"

namespace cohort::group {
namespace {

const char* name_of(Operation operation) {
  constexpr const char* names[] = {"barrier",        "all_reduce", "broadcast", "all_gather",
                                   "reduce_scatter", "all_to_all", "split",     "empty",
                                   "send",           "recv"};
  return names[static_cast<std::size_t>(operation)];
}

bool reduces(const Call& call) {
  return call.operation == Operation::all_reduce || call.operation == Operation::reduce_scatter;
}

bool has_tensors(const Call& call) {
  return call.operation != Operation::barrier && call.operation != Operation::split;
}

std::string shape_of(const Call& call) {
  std::string text = "[";
  for (std::size_t i = 0; i < call.dimensions; ++i) {
    if (i == Call::kMostDimensions) return text + ", …]";
    text += (i == 0 ? "" : ", ") + std::to_string(call.sizes[i]);
  }
  return text + "]";
}

bool agree(const Call& a, const Call& b) {
  return a.operation == b.operation && a.number == b.number && a.type == b.type && a.how == b.how &&
         a.mean == b.mean && a.peer == b.peer && a.tensors == b.tensors && a.digest == b.digest;
}

}  // namespace

// FNV-1a, byte by byte.
std::uint64_t mixed(std::uint64_t digest, std::uint64_t word) {
  for (int shift = 0; shift < 64; shift += 8) {
    digest = (digest ^ ((word >> shift) & 0xff)) * 0x100000001b3ULL;
  }
  return digest;
}

void Call::add_shape(std::span<const std::int64_t> shape, bool any_rows) {
  if (tensors++ == 0) {
    digest = 0xcbf29ce484222325ULL;
    dimensions = static_cast<std::uint32_t>(shape.size());
    std::copy_n(shape.begin(), std::min(shape.size(), kMostDimensions), sizes);
  }
  digest = mixed(digest, shape.size());
  for (std::size_t i = any_rows ? 1 : 0; i < shape.size(); ++i) {
    digest = mixed(digest, static_cast<std::uint64_t>(shape[i]));
  }
}

bool Call::is_sound() const {
  return magic == kMagic && operation <= Operation::receive &&
         type <= collective::ElementType::boolean && how <= collective::Reduction::max &&
         mean <= 1 && dimensions <= 64 &&
         std::ranges::all_of(sizes, [](std::int64_t size) { return size >= 0; });
}

const char* name_of(collective::ElementType type) {
  constexpr const char* names[] = {"float32",  "float64", "int64", "bytes",
                                   "bfloat16", "int32",   "uint8", "bool"};
  return names[static_cast<std::size_t>(type)];
}

std::string describe(const Call& call) {
  std::string text = name_of(call.operation);
  if (reduces(call)) {
    text += fmt::format(" ({})", call.mean != 0 ? "mean" : collective::name_of(call.how));
  }
  if (call.operation == Operation::broadcast || call.operation == Operation::receive) {
    text += fmt::format(" from rank {}", call.peer);
  }
  if (call.operation == Operation::send) text += fmt::format(" to rank {}", call.peer);
  if (!has_tensors(call)) return text;
  if (call.tensors > 1) {
    return text + fmt::format(" of {} tensors, the first {} {}", call.tensors, name_of(call.type),
                              shape_of(call));
  }
  return text + fmt::format(" of {} {}", name_of(call.type), shape_of(call));
}

void check_agreement(std::span<const Call> calls) {
  const auto other =
      std::ranges::find_if_not(calls, [&](const Call& call) { return agree(calls.front(), call); });
  if (other == calls.end()) return;
  std::string words;
  for (std::size_t rank = 0; rank < calls.size(); ++rank) {
    const bool seen = std::any_of(calls.begin(), calls.begin() + static_cast<std::ptrdiff_t>(rank),
                                  [&](const Call& call) { return agree(call, calls[rank]); });
    if (seen) continue;
    words +=
        fmt::format("{}rank {} calls {}", words.empty() ? "" : ", ", rank, describe(calls[rank]));
  }
  throw Error(ErrorCode::invalid,
              fmt::format("call {} of the group is not the same on all ranks: {}",
                          calls.front().number, words))
      .about_rank(static_cast<int>(other - calls.begin()));
}

bool share_a_place(std::span<const Call> calls) {
  return calls.front().place != 0 && std::ranges::all_of(calls, [&](const Call& call) {
           return call.place == calls.front().place;
         });
}

std::string mismatch(const Call& sent, int sender, const Call& received, int receiver) {
  if (sent.type == received.type && sent.tensors == received.tensors &&
      sent.digest == received.digest) {
    return "";
  }
  return fmt::format("rank {} calls {}, but rank {} calls {}", sender, describe(sent), receiver,
                     describe(received));
}

Call call_in(std::span<const std::byte> record, int rank) {
  Call call;
  if (record.size() >= sizeof(Call)) std::memcpy(&call, record.data(), sizeof(Call));
  if (record.size() < sizeof(Call) || !call.is_sound()) {
    throw Error(ErrorCode::corrupt,
                fmt::format("what rank {} says that it calls is no call of this build", rank))
        .about_rank(rank);
  }
  return call;
}

}  // namespace cohort::group
