#pragma once

#include <cohort/group.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "group/communicator.h"

namespace cohort {

/// What is behind a Group, whoever made it (join(), Group::split, tests).
struct Group::State {
  /// What its connections stand on; goes last.
  std::shared_ptr<const void> meeting;
  std::shared_ptr<group::Communicator> communicator;
  std::string engine;
  /// Of every rank, counted in the order of their first ranks.
  std::vector<int> hosts;
  /// How many of the program's modules average their gradients in it so far, and the most trained
  /// parameters that one of them has.
  std::uint64_t modules = 0;
  std::size_t most_parameters = 0;
};

}  // namespace cohort

namespace cohort::parallel {

/// For the room behind Group: makes one, and looks into it.
struct GroupAccess {
  /// Ranks of one communicator make theirs. `meeting` is kept until the group has ended.
  static Group make(std::shared_ptr<group::Communicator> communicator,
                    std::shared_ptr<const void> meeting);

  static Group::State& state(const Group& group) { return *group.state_; }
  static group::Communicator& communicator(const Group& group) {
    return *group.state_->communicator;
  }
};

}  // namespace cohort::parallel
