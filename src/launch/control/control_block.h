#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "launch/control/cards.h"
#include "launch/control/piece_losses.h"
#include "launch/control/view_register.h"

namespace cohort::launch {

/// The control channel between a launcher and its tasks, be they processes or threads. All that one
/// tells the other goes through it:
///
///   orders    launcher → tasks   the group to train in, stop, pause, sent away, end of the servers
///   reports   task → launcher    a card each (cards.h): state, step, sign of life, result
///   notes     chief → all        how far the log is, what was saved, losses of pieces
///
/// Who writes which register, and how it changes:
///
///   view                       launcher          a group of a larger generation each time
///   sent away (per worker)     launcher          set before publish(), taken back at a new start
///   stop, last step            launcher          once: stop, then last step
///   pause, loss, servers' end  launcher          generations, which grow
///   broken                     launcher, worker  a generation, which grows whoever writes it
///   chief, total steps         launcher
///   saved                      chief             once
///   asked parts                chief             a number that grows, per token
///   logged step                chief             set anew by every chief that takes over
///   first step                 chief             in the first group
///   a card                     its task; the launcher's while there is none
///   a queue of losses          its worker puts, the chief releases
///
/// What a reader may see: every register whole, but no two registers of one moment, nor in the
/// order in which they were written (loads that are made in every step are relaxed). So each is
/// made to be understood alone: a generation in it says which group it is about, and what is about
/// an older one is passed over. Where an order matters (may_head_for, send_away before publish) it
/// is said there.
///
/// It is memory today, so that looking costs a load and what a killed task has said stays. But it
/// is used as a network could be: it holds numbers and texts, no pointers; every register has one
/// writer at a time, or only grows whoever writes it (so that copies can be put together by taking
/// the larger); and nobody waits for an answer in it. The one exception is may_head_for(), whose
/// launcher must see what workers show at once: where it cannot, there is kNoCommonStep.
///
/// Made before the workers are started, with room for those that may come later; forked processes
/// share it. What people and other programs ask of a launcher comes to it as Requests
/// (launch/requests.h).
class ControlBlock {
 public:
  /// Throws Error where the memory cannot be had.
  ControlBlock(int max_workers, int servers);
  ~ControlBlock();
  ControlBlock(const ControlBlock&) = delete;
  ControlBlock& operator=(const ControlBlock&) = delete;

  // ---- reports

  std::span<WorkerCard> cards() const { return cards_; }
  WorkerCard& card(int worker) const { return cards_[static_cast<std::size_t>(worker)]; }

  std::span<ServerCard> servers() const { return servers_; }
  ServerCard& server(int number) const { return servers_[static_cast<std::size_t>(number)]; }

  // ---- orders

  /// The newest group; its workers go on in it. See ViewRegister.
  void publish(const cluster::View& view) { view_.write(view); }
  const ViewRegister& view() const { return view_; }

  /// There will be no group with this worker; to be said before publish().
  void send_away(int worker) { dismissals_[static_cast<std::size_t>(worker)].store(true); }
  bool is_sent_away(int worker) const {
    return dismissals_[static_cast<std::size_t>(worker)].load();
  }
  void take_back(int worker) { dismissals_[static_cast<std::size_t>(worker)].store(false); }

  /// Asks all workers to stop together after the step they are in, for good.
  void request_stop() { header_->stop.store(true); }
  bool stop_requested() const { return header_->stop.load(std::memory_order_relaxed); }

  /// Workers that make their steps alone and come together only now and then (averaging) must
  /// still stop after the same step, without asking each other, and soon. So before each step such
  /// a worker shows how many steps it will have done then, and looks whether there is a stop: with
  /// one the launcher, which sees what all have shown, has chosen the furthest of them. Who showed
  /// its step too late to be seen finds the stop and waits for that choice; so nobody goes further.
  ///
  /// True where the worker may make the step that brings it to `steps`.
  bool may_head_for(WorkerCard& card, std::int64_t steps) const;

  /// The launcher's part, right after request_stop(): what the furthest of these workers has shown,
  /// and the choice, which is that or later. Where the launcher does not see all workers of the
  /// group it is kNoCommonStep: they stop when they come together.
  static constexpr std::int64_t kNoCommonStep = std::numeric_limits<std::int64_t>::max();
  std::int64_t furthest_step(std::span<const int> workers) const;
  void set_last_step(std::int64_t steps) { header_->last_step.store(steps); }

  /// The same as request_stop() for the workers of this group (and earlier ones), which then wait
  /// for the next.
  void request_pause(std::int64_t generation) { header_->pause_generation.store(generation); }
  bool pause_requested(std::int64_t generation) const {
    return header_->pause_generation.load(std::memory_order_relaxed) >= generation;
  }

  /// A task of this group is lost, or has left it: nobody waits any longer for it to appear.
  void break_group(std::int64_t generation) {
    // Workers break theirs too, and must not mend a later one.
    std::int64_t broken = header_->broken_generation.load();
    while (broken < generation &&
           !header_->broken_generation.compare_exchange_weak(broken, generation)) {
    }
  }
  bool is_broken(std::int64_t generation) const {
    return header_->broken_generation.load(std::memory_order_relaxed) >= generation;
  }

  /// A task of this group is gone for good, whether or not the others go on without it: what it
  /// was to do for them in this group it will not.
  void note_loss(std::int64_t generation) { header_->loss_generation.store(generation); }
  bool has_lost(std::int64_t generation) const {
    return header_->loss_generation.load(std::memory_order_relaxed) >= generation;
  }

  /// Ends the servers of this group and earlier ones.
  void end_servers(std::int64_t generation) { header_->servers_end_generation.store(generation); }
  bool servers_shall_end(std::int64_t generation) const {
    return header_->servers_end_generation.load(std::memory_order_relaxed) >= generation;
  }

  /// The worker that is chief now, by its number: whose card the progress and the summary of the
  /// run are read from. Workers know the chief by their view.
  int chief() const { return header_->chief.load(std::memory_order_relaxed); }
  void set_chief(int worker) { header_->chief.store(worker); }

  /// Of the whole job.
  std::int64_t total_steps() const { return header_->total_steps.load(); }
  void set_total_steps(std::int64_t steps) { header_->total_steps.store(steps); }

  // ---- the chief's notes

  /// The chief has saved everything because the run was asked to end.
  void set_saved() { header_->saved.store(true); }
  bool is_saved() const { return header_->saved.load(); }

  /// Where nobody waits for anybody: the chief asks the others of its group, which know it by
  /// `token`, for their parts of a checkpoint; questions are numbered from 1.
  void ask_for_parts(std::uint32_t token, std::uint32_t number) {
    header_->asked_parts.store(std::uint64_t{token} << 32 | number);
  }
  /// The number of the newest question of that group; 0: there is none.
  std::uint32_t asked_parts(std::uint32_t token) const {
    const std::uint64_t asked = header_->asked_parts.load(std::memory_order_relaxed);
    return asked >> 32 == token ? static_cast<std::uint32_t>(asked) : 0;
  }

  /// What a worker says of pieces it has made, for the chief's log.
  LossQueue losses_of(int worker) const {
    return LossQueue(losses_ + static_cast<std::size_t>(worker) * LossQueue::bytes_needed());
  }

  /// The newest step that a chief has logged, or begun its log after; -1: there was no chief yet.
  std::int64_t logged_step() const { return header_->logged_step.load(); }
  void set_logged_step(std::int64_t step) { header_->logged_step.store(step); }

  /// The step the run began with: not 0 where it was resumed.
  std::int64_t first_step() const { return header_->first_step.load(); }
  void set_first_step(std::int64_t step) { header_->first_step.store(step); }

 private:
  struct Header {
    std::atomic<bool> stop{false};
    std::atomic<bool> saved{false};
    std::atomic<int> chief{0};
    std::atomic<std::int64_t> last_step{-1};  // Not chosen yet.
    std::atomic<std::int64_t> pause_generation{0};
    std::atomic<std::int64_t> broken_generation{0};
    std::atomic<std::int64_t> loss_generation{0};
    std::atomic<std::int64_t> servers_end_generation{0};
    std::atomic<std::uint64_t> asked_parts{0};  // A token, then a number.
    std::atomic<std::int64_t> first_step{0};
    std::atomic<std::int64_t> logged_step{-1};
    std::atomic<std::int64_t> total_steps{0};
  };

  std::size_t bytes_;  // Of the mapping, which begins with the header:
  Header* header_;
  std::span<WorkerCard> cards_;
  std::span<ServerCard> servers_;
  std::span<std::atomic<bool>> dismissals_;
  ViewRegister view_;
  std::byte* losses_;
};

}  // namespace cohort::launch
