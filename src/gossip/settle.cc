#include "gossip/settle.h"

#include <thread>

#include "base/fail.h"

namespace cohort {
namespace {

constexpr auto kPause = std::chrono::microseconds(200);

}  // namespace

void settle(PeerBoxes& boxes, Store& store, const SettleOptions& options,
            const std::function<void()>& take_arrived) {
  std::int64_t settled = 0;
  for (bool counted = false; settled < options.world;) {
    take_arrived();
    const bool first = !counted && boxes.idle();
    counted |= first;
    settled = store.add(options.key, first ? 1 : 0);
    if (settled >= options.world) break;
    if (const auto lost = boxes.lost_peer()) {
      throw Error(ErrorCode::peer_lost,
                  fmt::format("rank {} is gone before the workers came together", *lost))
          .about_rank(*lost);
    }
    if (options.deadline.passed()) {
      fail(ErrorCode::timeout, "only {} of {} workers came together in time", settled,
           options.world);
    }
    std::this_thread::sleep_for(kPause);
  }
  take_arrived();  // What came between the last look and the last worker's word.
}

}  // namespace cohort
