#include "model/layers/shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace cohort {

std::int64_t Shape::elements() const {
  std::int64_t product = 1;
  for (const auto size : sizes) product *= size;
  return product;
}

std::string to_string(const Shape& shape) {
  return fmt::format("{}{}", fmt::join(shape.sizes, "x"), shape.tokens ? " tokens" : "");
}

}  // namespace cohort
