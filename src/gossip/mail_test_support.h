#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/random.h"
#include "gossip/mail.h"

// One worker's mail, as tests of mail have it.

namespace cohort::gossip {

using Floats = std::vector<float>;

/// Of every vector that travels.
inline constexpr std::size_t kMailFloats = 96;
inline constexpr std::uint64_t kMailSeed = 21;
inline constexpr double kJobSteps = 100;

inline MailOptions mail_options(const std::string& codec, Topology topology, int rank, int world) {
  MailOptions options;
  options.topology = topology;
  options.place = {.rank = rank, .world = world, .seed = kMailSeed};
  options.compression.kind = codec;
  options.compression.ratio = 0.1;
  options.compression.rank = 1;
  options.shape = {.count = kMailFloats, .matrices = {{.offset = 0, .rows = 8, .columns = 12}}};
  options.job = {.steps = kJobSteps, .parts = 4, .rate = 1};
  return options;
}

/// Near 1, the same for the same stream.
inline Floats random_floats(int stream) {
  Random random(kMailSeed, static_cast<std::uint64_t>(stream));
  Floats values(kMailFloats);
  for (float& value : values) value = static_cast<float>(random.uniform(0.5, 1.5));
  return values;
}

}  // namespace cohort::gossip
