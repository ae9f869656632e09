#include "gossip/boxes/peer_boxes.h"

#include <thread>

#include "base/fail.h"
#include "base/integers.h"

namespace cohort::gossip {
namespace {

/// Between two looks at the boxes and the count.
constexpr auto kLookPause = std::chrono::microseconds(200);

/// What a worker that gives up adds to the count, so that all others see it at once.
constexpr std::int64_t kGivenUp = -1'000'000'000;

std::string lost_key(const MeetingOptions& options) {
  return options.key + "/lost";
}

[[noreturn]] void give_up_on(int rank) {
  throw Error(ErrorCode::peer_lost,
              fmt::format("rank {} is gone before the workers came together", rank))
      .about_rank(rank);
}

}  // namespace

std::unique_ptr<PeerBoxes> make_peer_boxes(const PeerBoxesOptions& options,
                                           transport::Engine& engine, cluster::Store& store) {
  if (engine.shared_regions() != nullptr) return make_shared_boxes(options, engine);
  return make_remote_boxes(options, engine, store);
}

void come_together(PeerBoxes& boxes, cluster::Store& store, const MeetingOptions& options,
                   const std::function<void()>& take_arrived) {
  std::int64_t came = 0;
  for (bool counted = false; came < options.world;) {
    take_arrived();
    const bool first = !counted && boxes.idle();
    counted |= first;
    came = store.add(options.key, first ? 1 : 0);
    if (came >= options.world) break;
    if (came < 0) {
      const auto lost =
          parse_integer(store.get(lost_key(options), options.deadline), 0, options.world - 1);
      give_up_on(static_cast<int>(lost.value_or(0)));
    }
    if (const auto lost = boxes.attendance().lost_peer()) {
      store.set_once(lost_key(options), std::to_string(*lost));
      store.add(options.key, kGivenUp);
      give_up_on(*lost);
    }
    if (options.deadline.passed()) {
      fail(ErrorCode::timeout, "only {} of {} workers came together in time", came, options.world);
    }
    std::this_thread::sleep_for(kLookPause);
  }
  take_arrived();  // What came between the last look and the last worker's word.
}

}  // namespace cohort::gossip
