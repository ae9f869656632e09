#include <array>
#include <cstdio>

#include "checkpoint/safetensors.h"
#include "events/event_writer.h"

/// Writes samples of Cohort's file formats into the folder it is given, for the readers in Python
/// to check; format_readers_test.py knows the values.
int main(int argc, char** argv) {
  using namespace cohort;
  if (argc != 2) {
    std::fputs("usage: write_samples FOLDER\n", stderr);
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  const std::array<float, 6> weights{-1, 0, 0.5, 1, 2, 4};
  const std::array<std::int64_t, 1> batches{-7};

  events::EventWriter first(folder / "events", "sample.host");
  for (std::int64_t step = 0; step < 30; step += 10) {
    first.scalar("loss", 1.0 / static_cast<double>(step + 1), step);
  }
  first.histogram("weights", weights, 20);
  first.close();

  events::EventWriter resumed(folder / "events", "sample.host");
  resumed.session_start(10);
  resumed.scalar("loss", 0.25, 10);
  resumed.scalar("loss", 0, 3'000'000'000);
  resumed.close();

  checkpoint::write_safetensors(
      folder / "sample.safetensors",
      std::array{checkpoint::TensorView{"weights", {2, 3}, std::span(weights)},
                 checkpoint::TensorView{"batches", {}, std::span(batches)}},
      {{"step", "30"}});
}
