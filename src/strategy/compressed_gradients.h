#pragma once

#include <cohort/job.h>

#include <span>

#include "compression/codec.h"
#include "compression/error_feedback.h"
#include "tensor/flat_layout.h"

namespace cohort::strategy {

/// What strategies whose gradients go through a codec need, whatever it is that they send them to:
/// the codec's view of flat gradients, and where momentum stands, before the codec or after it.

/// What a codec must know of vectors with this layout: which parts of them are matrices. Tensors of
/// more dimensions count as matrices of as many rows as their first has.
compression::CodecShape codec_shape(const tensor::FlatLayout& layout);

/// Makes the floats between the tensors zero again: some codecs (sign) know no zero, and what
/// stands there would be sent again and again.
void clear_padding(const tensor::FlatLayout& layout, std::span<float> values);

/// Whether momentum is applied to a worker's gradients before they are compressed, and not by the
/// optimizer that gets them ("momentum correction", Lin et al. 2018; WorkerMomentum says why): that
/// of SGD, for topk and, where workers go in step, for sign, unless the job says otherwise.
bool corrects_momentum(const StrategyOptions& strategy, const OptimizerOptions& own);

/// The job's momentum as a worker applies it; where corrects_momentum(), the update is then made
/// by an optimizer of without_momentum(own).
compression::WorkerMomentum worker_momentum(const OptimizerOptions& own);

}  // namespace cohort::strategy
