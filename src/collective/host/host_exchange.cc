#include "collective/host/host_exchange.h"

#include <algorithm>
#include <cstring>

namespace cohort::collective {
namespace {

constexpr std::size_t kStagePage = 4096;

/// Of the content of a stage in a round. Two stages of every rank of a pair fit into the cache of
/// one core; larger ones do not save anything, since a barrier costs less than copying this much.
constexpr std::size_t kPiece = 128 << 10;

// A stage: what is given | what became of what was given in the round before.
constexpr std::size_t kResult = kPiece;
constexpr std::size_t kStageBytes = 2 * kPiece;

/// Of a piece cut into equal slots, one for every rank: whole cache lines.
std::size_t slot_bytes(int world) {
  return std::max<std::size_t>(kPiece / static_cast<std::size_t>(world) / 64, 1) * 64;
}

std::size_t barrier_bytes(int world) {
  return (HostBarrier::bytes_needed(world) + kStagePage - 1) / kStagePage * kStagePage;
}

void copy_bytes(std::byte* to, std::span<const std::byte> from) {
  if (!from.empty() && to != from.data()) std::memcpy(to, from.data(), from.size());
}

std::span<std::byte> piece_of(std::span<std::byte> bytes, std::size_t begin, std::size_t most) {
  return begin >= bytes.size() ? std::span<std::byte>()
                               : bytes.subspan(begin, std::min(most, bytes.size() - begin));
}

}  // namespace

std::size_t HostExchange::bytes_needed(int world) {
  const auto stages = 2 * static_cast<std::size_t>(world);
  return barrier_bytes(world) + stages * std::max(kStageBytes, slot_bytes(world) * stages);
}

HostExchange::HostExchange(int rank, int world, std::span<std::byte> region, os::PeerWatch watch,
                           os::WaitPolicy policy)
    : rank_(rank),
      world_(world),
      region_(region),
      barrier_(rank, world, region, std::move(watch), policy) {
  sources_.resize(static_cast<std::size_t>(world));
}

std::byte* HostExchange::stage(int rank, std::size_t round) const {
  const auto stages = 2 * static_cast<std::size_t>(world_);
  const std::size_t number = static_cast<std::size_t>(rank) * 2 + round % 2;
  const std::size_t each = std::max(kStageBytes, slot_bytes(world_) * stages);
  return region_.data() + barrier_bytes(world_) + number * each;
}

void HostExchange::pass(Deadline deadline, const char* doing) {
  barrier_.arrive_and_wait(deadline, doing);
  ++rounds_;
}

std::span<const std::byte* const> HostExchange::sources(const std::byte* own, std::size_t offset) {
  for (int rank = 0; rank < world_; ++rank) {
    sources_[static_cast<std::size_t>(rank)] = rank == rank_ ? own : stage_of(rank) + offset;
  }
  return sources_;
}

void HostExchange::begin(std::span<const std::byte> record, std::span<const std::byte> content,
                         Deadline deadline) {
  copy_bytes(own_stage(), record);
  copy_bytes(own_stage() + kRecordBytes, content);
  pass(deadline, "next call of the group");
}

std::span<const std::byte> HostExchange::record_of(int rank) const {
  return {stage_of(rank), kRecordBytes};
}

const std::byte* HostExchange::content_of(int rank) const {
  return stage_of(rank) + kRecordBytes;
}

// Two things a round: of piece k every rank gives what others own and reduces what it owns; of piece
// k - 1 it shows what it has reduced, and takes what the others have. A segment stands on a stage
// where it stands in its piece.
void HostExchange::all_reduce(Elements elements, Reduction how, int divisor, Deadline deadline) {
  const std::size_t width = size_of(elements.type());
  const std::size_t most = kPiece / width;
  const std::size_t pieces = (elements.size() + most - 1) / most;
  const auto piece = [&](std::size_t k) {
    return elements.subspan(k * most, std::min(most, elements.size() - k * most));
  };
  for (std::size_t k = 0; k <= pieces; ++k) {
    for (int owner = 0; k < pieces && owner < world_; ++owner) {
      if (owner == rank_) continue;
      const Segment segment = segment_of(piece(k).size(), world_, owner);
      copy_bytes(own_stage() + segment.begin * width,
                 piece(k).subspan(segment.begin, segment.size()).bytes());
    }
    pass(deadline, "all-reduce");
    for (int owner = 0; k > 0 && owner < world_; ++owner) {
      if (owner == rank_) continue;
      const Segment segment = segment_of(piece(k - 1).size(), world_, owner);
      const auto to = piece(k - 1).subspan(segment.begin, segment.size()).bytes();
      copy_bytes(to.data(), {stage_of(owner) + kResult, to.size()});
    }
    if (k == pieces) continue;
    const Segment mine = segment_of(piece(k).size(), world_, rank_);
    const Elements own = piece(k).subspan(mine.begin, mine.size());
    reduce_of({own.type(), how}, own.bytes(), sources(own.bytes().data(), mine.begin * width));
    divide(own, divisor);
    copy_bytes(own_stage() + kResult, own.bytes());
  }
}

void HostExchange::reduce_scatter(Elements given, Elements out, Reduction how, int divisor,
                                  Deadline deadline) {
  const std::size_t slot = slot_bytes(world_);
  const std::size_t size = out.bytes().size();
  const auto part = [&](int rank) {
    return given.bytes().subspan(static_cast<std::size_t>(rank) * size, size);
  };
  for (std::size_t begin = 0; begin < size; begin += slot) {
    for (int rank = 0; rank < world_; ++rank) {
      if (rank == rank_) continue;
      copy_bytes(own_stage() + static_cast<std::size_t>(rank) * slot,
                 piece_of(part(rank), begin, slot));
    }
    pass(deadline, "reduce-scatter");
    const auto to = piece_of(out.bytes(), begin, slot);
    reduce_of({out.type(), how}, to,
              sources(part(rank_).data() + begin, static_cast<std::size_t>(rank_) * slot));
    divide(Elements(to, out.type()), divisor);
  }
}

void HostExchange::broadcast(std::span<std::byte> bytes, int root, Deadline deadline) {
  for (std::size_t begin = 0; begin < bytes.size(); begin += kPiece) {
    const auto piece = piece_of(bytes, begin, kPiece);
    if (rank_ == root) copy_bytes(own_stage(), piece);
    pass(deadline, "broadcast");
    if (rank_ != root) copy_bytes(piece.data(), {stage_of(root), piece.size()});
  }
}

void HostExchange::all_gather(std::span<const std::byte> given,
                              std::span<const std::span<std::byte>> taken, Deadline deadline) {
  std::size_t largest = 0;
  for (const auto& part : taken) largest = std::max(largest, part.size());
  copy_bytes(taken[static_cast<std::size_t>(rank_)].data(), given);
  for (std::size_t begin = 0; begin < largest; begin += kPiece) {
    copy_bytes(own_stage(), piece_of(taken[static_cast<std::size_t>(rank_)], begin, kPiece));
    pass(deadline, "all-gather");
    for (int rank = 0; rank < world_; ++rank) {
      if (rank == rank_) continue;
      const auto to = piece_of(taken[static_cast<std::size_t>(rank)], begin, kPiece);
      copy_bytes(to.data(), {stage_of(rank), to.size()});
    }
  }
}

void HostExchange::all_to_all(std::span<const std::byte> given, std::span<std::byte> taken,
                              Deadline deadline) {
  const std::size_t slot = slot_bytes(world_);
  const std::size_t size = taken.size() / static_cast<std::size_t>(world_);
  const auto offset = [&](int rank) { return static_cast<std::size_t>(rank) * size; };
  copy_bytes(taken.data() + offset(rank_), given.subspan(offset(rank_), size));
  for (std::size_t begin = 0; begin < size; begin += slot) {
    const std::size_t count = std::min(slot, size - begin);
    for (int rank = 0; rank < world_; ++rank) {
      if (rank == rank_) continue;
      copy_bytes(own_stage() + static_cast<std::size_t>(rank) * slot,
                 given.subspan(offset(rank) + begin, count));
    }
    pass(deadline, "all-to-all");
    for (int rank = 0; rank < world_; ++rank) {
      if (rank == rank_) continue;
      copy_bytes(taken.data() + offset(rank) + begin,
                 {stage_of(rank) + static_cast<std::size_t>(rank_) * slot, count});
    }
  }
}

}  // namespace cohort::collective
