#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/files.h"
#include "checkpoint/checkpoint_folder.h"

namespace cohort::checkpoint {

/// What was thrown, if anything.
inline std::optional<Error> error_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

/// Values from which a test can tell which step a checkpoint is of, and whether it is whole.
struct Sample {
  std::int64_t step;
  std::vector<float> weights = std::vector<float>(200'000, static_cast<float>(step));
  std::vector<float> momentum = std::vector<float>(1000, -static_cast<float>(step));

  CheckpointContent content() const {
    CheckpointContent all;
    all.step = step;
    all.files.resize(2);
    all.files[0].name = "model.safetensors";
    all.files[0].tensors = {{"weight", {200, 1000}, std::span(weights)}};
    all.files[1].name = "optimizer.safetensors";
    all.files[1].tensors = {{"momentum/weight", {1000}, std::span(momentum)}};
    all.state = "{\"step\": " + std::to_string(step) + "}";
    return all;
  }
};

inline void expect_whole(const Checkpoint& checkpoint) {
  const Sample sample{checkpoint.step()};
  EXPECT_EQ(checkpoint.path().filename(), "step-00000000" + std::to_string(sample.step));
  EXPECT_TRUE(
      std::ranges::equal(checkpoint.tensors("model.safetensors").floats("weight"), sample.weights));
  EXPECT_TRUE(std::ranges::equal(
      checkpoint.tensors("optimizer.safetensors").floats("momentum/weight"), sample.momentum));
  EXPECT_EQ(checkpoint.state(), sample.content().state);
}

class CheckpointFolderTest : public testing::Test {
 protected:
  void write(std::int64_t step) { folder_.write(Sample{step}.content()); }

  /// The step of the newest whole one, or -1.
  std::int64_t newest() const {
    const auto found = folder_.newest();
    if (!found.checkpoint) return -1;
    expect_whole(*found.checkpoint);
    return found.checkpoint->step();
  }

  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      all.push_back(entry.path().filename());
    }
    return all;
  }

  std::string latest() const { return read_file(folder_.path() / "LATEST"); }

  const TemporaryFolder temporary_;
  CheckpointFolder folder_{temporary_.path() / "checkpoints"};
};

}  // namespace cohort::checkpoint
