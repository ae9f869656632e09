#pragma once

#include <span>

namespace cohort {

/// The sum of squares, in double, in an order that depends on the size only.
double sum_of_squares(std::span<const float> values);

/// What gradients of this norm are multiplied by so that it is at most `clip_norm`; 1 where
/// clipping is off (0). The same small number as torch's clip_grad_norm_ keeps the division
/// defined.
double clip_scale(double norm, double clip_norm);

}  // namespace cohort
