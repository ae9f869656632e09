#include "gossip/claims.h"

#include <algorithm>
#include <unordered_set>

namespace cohort::gossip {
namespace {

constexpr int kTakerBits = 16;
constexpr std::uint64_t kTakerMask = (std::uint64_t{1} << kTakerBits) - 1;

std::int64_t count_of(std::uint64_t taken) {
  return static_cast<std::int64_t>(taken >> kTakerBits);
}

/// -1 where nobody has taken anything.
int taker_of(std::uint64_t taken) {
  return static_cast<int>(taken & kTakerMask) - 1;
}

std::uint64_t working_on(std::int64_t index) {
  return 2 * (static_cast<std::uint64_t>(index) + 1);
}

/// Makes `value` at least `to`.
void raise(std::atomic<std::uint64_t>& value, std::uint64_t to) {
  std::uint64_t now = value.load(std::memory_order_relaxed);
  while (now < to && !value.compare_exchange_weak(now, to, std::memory_order_acq_rel)) {
  }
}

std::int64_t number_of(const cluster::Claim& claim, std::int64_t parts) {
  return claim.step * parts + claim.part;
}

class CountedClaims : public Claims {
 public:
  CountedClaims(ClaimCounter& counter, int worker) : counter_(counter), worker_(worker) {}

  std::optional<cluster::Claim> next() override { return last_ = counter_.next(worker_); }
  void done() override {
    if (last_) counter_.done(worker_, *last_);
  }
  void stop() override { counter_.stop(); }
  bool stopped() override { return counter_.stopped(); }
  cluster::WorkLeft left() const override { return counter_.left(); }

 private:
  ClaimCounter& counter_;
  int worker_;
  std::optional<cluster::Claim> last_;
};

}  // namespace

std::int64_t ClaimRange::size() const {
  const std::int64_t in_order = std::max<std::int64_t>(end_step * work.parts - work.next, 0);
  return static_cast<std::int64_t>(work.again.size()) + in_order;
}

// The pieces of a range are counted by *index*, in the order in which they are handed out: first
// those to do again, then all from `next` on. Numbers (step · parts + part) are those of the job.
std::int64_t ClaimRange::pieces_before(const cluster::Claim& claim) const {
  const std::int64_t number = number_of(claim, work.parts);
  if (number >= work.next) return number;
  const auto found = std::ranges::find(work.again, claim);
  return work.next - (work.again.end() - found);
}

cluster::Claim ClaimRange::at(std::int64_t index) const {
  const auto again = static_cast<std::int64_t>(work.again.size());
  if (index < again) return work.again[static_cast<std::size_t>(index)];
  const std::int64_t number = work.next + index - again;
  return {.step = number / work.parts, .part = static_cast<int>(number % work.parts)};
}

std::int64_t whole_steps(const cluster::WorkLeft& work) {
  std::int64_t first = work.next / work.parts;
  for (const cluster::Claim& claim : work.again) first = std::min(first, claim.step);
  return first;
}

// What is left by all that several workers know. None of them has seen everything: each knows which
// pieces were done as of its own last look. A piece that anybody knows to be handed out and done is
// done; so of the furthest view those pieces go that another one, which has come as far, no longer
// has to do again.
cluster::WorkLeft merged_work(std::span<const cluster::WorkLeft> views) {
  cluster::WorkLeft merged = *std::ranges::max_element(views, {}, &cluster::WorkLeft::next);
  for (const cluster::WorkLeft& view : views) {
    std::unordered_set<std::int64_t> again;
    for (const cluster::Claim& claim : view.again) again.insert(number_of(claim, merged.parts));
    std::erase_if(merged.again, [&](const cluster::Claim& claim) {
      const std::int64_t number = number_of(claim, merged.parts);
      return number < view.next && !again.contains(number);
    });
  }
  return merged;
}

std::size_t ClaimCounter::bytes_needed(int world) {
  return sizeof(Head) + static_cast<std::size_t>(world) * sizeof(Piece);
}

ClaimCounter::ClaimCounter(std::span<std::byte> memory, int world, const ClaimRange& range)
    : memory_(memory), world_(world), range_(range) {}

/// Whoever dies between taking a piece and noting it has it noted by the next one to take. All can
/// write there: a taker that is none of them has no line.
void ClaimCounter::note_last(std::uint64_t taken) const {
  const int taker = taker_of(taken);
  if (taker >= 0 && taker < world_) raise(piece(taker).state, working_on(count_of(taken) - 1));
}

// Nobody holds a lock, since whoever holds one may be killed. `taken` has in one word how many
// pieces were handed out and who took the last of them, and is changed by compare-and-exchange;
// that this worker is at that piece is a second store, in its own line. Between the two it may die,
// or another may look: then note_last() makes the second store for it, which does no harm twice.
std::optional<cluster::Claim> ClaimCounter::next(int worker) {
  std::uint64_t taken = head().taken.load(std::memory_order_acquire);
  while (!stopped() && count_of(taken) < range_.size()) {
    note_last(taken);
    const std::int64_t index = count_of(taken);
    const std::uint64_t with_this = (static_cast<std::uint64_t>(index + 1) << kTakerBits) |
                                    (static_cast<std::uint64_t>(worker) + 1);
    if (head().taken.compare_exchange_weak(taken, with_this, std::memory_order_acq_rel)) {
      note_last(with_this);
      return range_.at(index);
    }
  }
  return std::nullopt;
}

void ClaimCounter::done(int worker, const cluster::Claim& claim) {
  std::atomic<std::uint64_t>& state = piece(worker).state;
  const std::uint64_t now = state.load(std::memory_order_acquire);
  const std::int64_t index = static_cast<std::int64_t>(now / 2) - 1;
  if (index < 0 || index >= range_.size()) return;
  const cluster::Claim last = range_.at(index);
  if (last.step == claim.step && last.part == claim.part) raise(state, now | 1);
}

/// The pieces that are taken and not done stand in the workers' lines; those to do again that were
/// never taken, and all after the last one taken, follow from the count.
cluster::WorkLeft ClaimCounter::left() const {
  const std::uint64_t taken = head().taken.load(std::memory_order_acquire);
  const std::int64_t count = std::min(count_of(taken), range_.size());
  note_last(taken);
  std::vector<std::int64_t> indices;
  for (int worker = 0; worker < world_; ++worker) {
    const std::uint64_t state = piece(worker).state.load(std::memory_order_acquire);
    const std::int64_t index = static_cast<std::int64_t>(state / 2) - 1;
    // What was taken since `taken` was read counts as not handed out.
    if (index >= 0 && state % 2 == 0 && index < count) indices.push_back(index);
  }
  const auto again = static_cast<std::int64_t>(range_.work.again.size());
  for (std::int64_t index = count; index < again; ++index) indices.push_back(index);

  cluster::WorkLeft left{.next = range_.work.next + std::max<std::int64_t>(count - again, 0),
                         .parts = range_.work.parts,
                         .again = {}};
  for (const std::int64_t index : indices) left.again.push_back(range_.at(index));
  std::ranges::sort(left.again, {},
                    [&](const cluster::Claim& claim) { return number_of(claim, left.parts); });
  return left;
}

std::unique_ptr<Claims> make_counted_claims(ClaimCounter& counter, int worker) {
  return std::make_unique<CountedClaims>(counter, worker);
}

}  // namespace cohort::gossip
