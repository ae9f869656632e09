#pragma once

#include <vector>

namespace cohort::transport {

/// Which way the ranks of a group differ.
enum class Axis { data, pipeline, tensor };

/// The ranks of a world in a block of three sides: those that differ in *data* alone see different
/// samples with the same part of the model; in *pipeline*, different layers; in *tensor*, different
/// parts of the same layers. Tensor places are next to each other, then pipeline, then data, since
/// ranks with neighbouring numbers are most often on one host and the innermost talk the most.
///
///   {data 2, pipeline 2, tensor 2}          data 0         data 1
///                                          tensor ──▶     tensor ──▶
///                              pipeline      0 1            4 5
///                                 ▼          2 3            6 7
///
/// Pure arithmetic, the same on every rank. A line of it is a group of ranks: what Engine::group()
/// takes. No job has a mesh yet: this is the seam for pipelines and tensor-parallel layers.
struct Mesh {
  int data = 1;
  int pipeline = 1;
  int tensor = 1;

  struct Place {
    int data = 0;
    int pipeline = 0;
    int tensor = 0;

    bool operator==(const Place&) const = default;
  };

  int world() const { return data * pipeline * tensor; }
  int size(Axis axis) const;

  Place place_of(int rank) const;
  int rank_at(const Place& place) const;

  /// The ranks that differ from this one along the axis alone, itself among them, in their order
  /// there: what Engine::group takes.
  std::vector<int> line(int rank, Axis axis) const;

  /// Throws Error(invalid) unless every side is at least 1 and all together are `world` ranks.
  void check(int world) const;
};

}  // namespace cohort::transport
