#include "group/shared_arrays.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <utility>

#include "group/call.h"

namespace cohort::group {
namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kPage = 4096;
/// A rank's copy of a slab of small pieces; what is larger than a piece of these has its own slab.
constexpr std::size_t kSmallSlab = 256 << 10;
constexpr std::size_t kSmallPiece = kSmallSlab / 4;

std::size_t whole(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

/// Of small pieces there are few sizes, so that they fit again for others.
std::size_t piece_bytes_for(std::size_t bytes) {
  return bytes <= kSmallPiece ? std::bit_ceil(std::max(bytes, kLine)) : whole(bytes, kPage);
}

std::size_t pieces_in_slab(std::size_t piece_bytes) {
  return std::max<std::size_t>(kSmallSlab / piece_bytes, 1);
}

bool is_free(std::byte flag) {
  return flag != std::byte{};
}

/// None of them is empty.
bool overlap(std::vector<std::span<const std::byte>> spans) {
  std::ranges::sort(spans, {}, [](auto bytes) { return bytes.data(); });
  const auto meet = [](auto one, auto next) { return one.data() + one.size() > next.data(); };
  return std::ranges::adjacent_find(spans, meet) != spans.end();
}

}  // namespace

struct SharedArrays::Slab {
  explicit Slab(std::size_t size_of_piece)
      : piece_bytes(size_of_piece), used(pieces_in_slab(size_of_piece)) {}

  std::size_t stride() const { return piece_bytes * used.size(); }  // A rank's copy.
  bool contains(std::span<const std::byte> bytes) const {
    return bytes.data() >= own.data() && bytes.data() + bytes.size() <= own.data() + own.size();
  }

  const std::size_t piece_bytes;
  std::vector<std::atomic<bool>> used;  // By piece; by this rank.
  std::uint64_t number = 0;             // The same on all ranks.
  std::span<std::byte> all;
  std::span<std::byte> own;
  // One of them keeps it mapped.
  std::shared_ptr<os::SharedMemory> memory = {};
  std::shared_ptr<transport::Engine> engine = {};
};

SharedArrays::SharedArrays(std::shared_ptr<transport::Engine> engine)
    : engine_(std::move(engine)) {}

std::vector<std::byte> SharedArrays::let_go() const {
  std::vector<std::byte> flags;
  for (const auto& slab : slabs_) {
    for (const auto& used : slab->used) {
      flags.push_back(std::byte{!used.load(std::memory_order_acquire)});
    }
  }
  return flags;
}

std::optional<Memory> SharedArrays::take(std::size_t bytes, std::span<const std::byte> free,
                                         std::uint64_t room, Deadline deadline) {
  const std::size_t piece_bytes = piece_bytes_for(bytes);
  for (auto flags = free; const auto& slab : slabs_) {
    const auto here = flags.first(slab->used.size());
    flags = flags.subspan(here.size());
    const auto found = std::ranges::find_if(here, is_free);
    if (slab->piece_bytes == piece_bytes && found != here.end()) {
      return hand_out(slab, static_cast<std::size_t>(found - here.begin()), bytes);
    }
  }
  const std::size_t copy = piece_bytes * pieces_in_slab(piece_bytes);
  room += give_back_unused(free, copy);
  if (copy > room) return std::nullopt;
  slabs_.push_back(make_slab(piece_bytes, deadline));
  return hand_out(slabs_.back(), 0, bytes);
}

Memory SharedArrays::hand_out(const std::shared_ptr<Slab>& slab, std::size_t piece,
                              std::size_t bytes) {
  std::atomic<bool>& used = slab->used[piece];
  used.store(true, std::memory_order_relaxed);
  const auto let_go = [slab, &used](const void*) { used.store(false, std::memory_order_release); };
  const auto place = slab->own.subspan(piece * slab->piece_bytes, bytes);
  return {place, std::shared_ptr<const void>(place.data(), let_go)};
}

std::shared_ptr<SharedArrays::Slab> SharedArrays::make_slab(std::size_t piece_bytes,
                                                            Deadline deadline) {
  auto slab = std::make_shared<Slab>(piece_bytes);
  const std::size_t stride = slab->stride();
  slab->number = ++made_;
  slab->all = engine_->shared_regions()->lasting_region(
      stride * static_cast<std::size_t>(engine_->world()), slab->memory, deadline);
  slab->own = slab->all.subspan(stride * static_cast<std::size_t>(engine_->rank()), stride);
  if (!slab->memory) slab->engine = engine_;
  return slab;
}

/// Slabs of which no rank uses anything, the oldest first, until no more bytes of such are kept than
/// are used, with those that are needed now. Returns how many bytes of every rank's copy went.
std::size_t SharedArrays::give_back_unused(std::span<const std::byte> free, std::size_t needed) {
  std::vector<bool> unused;
  std::size_t kept = 0;
  for (const auto& slab : slabs_) {
    unused.push_back(std::ranges::all_of(free.first(slab->used.size()), is_free));
    free = free.subspan(slab->used.size());
    (unused.back() ? kept : needed) += slab->stride();
  }
  const std::size_t before = kept;
  auto flag = unused.begin();
  std::erase_if(slabs_, [&](const auto& slab) {
    if (!*flag++ || kept <= needed) return false;
    kept -= slab->stride();
    return true;
  });
  return before - kept;
}

const SharedArrays::Slab* SharedArrays::slab_of(std::span<const std::byte> bytes) const {
  const auto found =
      std::ranges::find_if(slabs_, [&](const auto& slab) { return slab->contains(bytes); });
  return found == slabs_.end() ? nullptr : found->get();
}

std::uint64_t SharedArrays::find(std::span<const Array> arrays,
                                 std::vector<collective::Copies>& copies) const {
  copies.clear();
  std::uint64_t digest = 0;
  std::vector<std::span<const std::byte>> places;
  for (const Array& array : arrays) {
    if (array.bytes.empty()) continue;
    const Slab* const slab = slab_of(array.bytes);
    if (slab == nullptr) return 0;
    const auto offset = static_cast<std::size_t>(array.bytes.data() - slab->own.data());
    digest = mixed(mixed(digest, slab->number), offset);
    copies.push_back({{slab->all.subspan(offset, array.bytes.size()), array.type}, slab->stride()});
    places.push_back(array.bytes);
  }
  return overlap(std::move(places)) ? 0 : digest;
}

}  // namespace cohort::group
