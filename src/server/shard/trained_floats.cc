#include "server/shard/trained_floats.h"

#include <algorithm>

#include "base/failpoint.h"
#include "optimizer/square_sum.h"
#include "server/memory/copy_past_cache.h"

namespace cohort {

TrainedFloats::TrainedFloats(const DenseArea& area, const Optimizer& optimizer)
    : optimizer_(optimizer), area_(area) {}

void TrainedFloats::update_part(std::size_t offset, std::span<const float> gradients,
                                const UpdateScalars& scalars) {
  part_slots_.clear();
  for (const std::span<float> slot : floats().slots) {
    part_slots_.push_back(slot.subspan(offset, gradients.size()));
  }
  optimizer_.update(values().subspan(offset, gradients.size()), gradients, part_slots_, scalars);
}

double TrainedFloats::update(const Aggregate& gradients, const Update& update) {
  UpdateScalars scalars = update.scalars;
  scalars.gradient_scale *= gradients.scale();
  scratch_.resize(std::min(values().size(), kSumPiece));
  const CopyFloats copy_updated = way_to_copy(values().size_bytes());
  double squares = 0;
  for_each_piece(values().size(), [&](std::size_t begin, std::size_t count) {
    save_floats(area_, begin, count);
    failpoint("server.in-update");
    const std::span<const float> piece = gradients.piece(begin, count, scratch_);
    if (update.want_norm) squares += sum_of_squares(piece);
    update_part(begin, piece, scalars);
    for (const std::span<float> copy : update.copies) {
      copy_updated(values().subspan(begin, count), copy.subspan(begin));
    }
    failpoint("server.in-update");
  });
  return squares * gradients.scale() * gradients.scale();
}

}  // namespace cohort
