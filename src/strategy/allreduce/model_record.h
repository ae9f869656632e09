#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "strategy/model_state.h"

namespace cohort {

/// What is known of a model that stands in memory which outlives the groups of workers that train
/// it there, kept in the same memory: so a worker that is killed at any instruction while it takes
/// the model from one group to the next leaves it to others.
///
/// The record *holds* while nobody has begun to change the model since it was written. Whoever
/// begins says so first; when its group is over, one worker of it makes the model whole (the notes
/// of the group tell how far an update has come) and writes the record anew.
class ModelRecord {
 public:
  static std::size_t bytes_needed(std::size_t buffers);

  /// `memory` is 64-byte aligned and has bytes_needed(buffers); zeroed, it is a record that holds.
  ModelRecord(std::span<std::byte> memory, std::size_t buffers);

  /// Of workers of one group, any number may say that they change the model from now on.
  void begin(std::int64_t group);
  /// Whether that group was the last to begin, and nobody has written a record since.
  bool is_changed_by(std::int64_t group) const;
  bool holds() const;

  /// The model is whole, and this is how far it has come. One worker at a time.
  void write(const ModelAge& age, std::span<const float> buffers);
  /// Of a record that holds.
  ModelAge age() const;
  std::span<const float> buffers() const { return buffers_; }

 private:
  struct Header {
    std::atomic<std::int64_t> changed_by;  ///< Group + 1; 0: none yet.
    std::atomic<std::int64_t> written_of;  ///< The same, when the record was written.
    ModelAge age;
  };

  Header* header_;
  std::span<float> buffers_;
};

}  // namespace cohort
