#include "transport/mesh.h"

#include "base/fail.h"

namespace cohort::transport {

int Mesh::size(Axis axis) const {
  if (axis == Axis::data) return data;
  return axis == Axis::pipeline ? pipeline : tensor;
}

Mesh::Place Mesh::place_of(int rank) const {
  return {.data = rank / (tensor * pipeline),
          .pipeline = rank / tensor % pipeline,
          .tensor = rank % tensor};
}

int Mesh::rank_at(const Place& place) const {
  return (place.data * pipeline + place.pipeline) * tensor + place.tensor;
}

std::vector<int> Mesh::line(int rank, Axis axis) const {
  Place place = place_of(rank);
  int& moving = axis == Axis::data       ? place.data
                : axis == Axis::pipeline ? place.pipeline
                                         : place.tensor;
  std::vector<int> ranks;
  for (moving = 0; moving < size(axis); ++moving) ranks.push_back(rank_at(place));
  return ranks;
}

void Mesh::check(int world) const {
  const bool positive = data >= 1 && pipeline >= 1 && tensor >= 1;
  const auto ranks = static_cast<long long>(data) * pipeline * tensor;
  if (positive && data <= world && pipeline <= world && tensor <= world && ranks == world) return;
  fail(ErrorCode::invalid, "a mesh of {} x {} x {} (data, pipeline, tensor) is not one of {} ranks",
       data, pipeline, tensor, world);
}

}  // namespace cohort::transport
