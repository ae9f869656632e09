// What checkpoints say in words: state.json, and the text in a worker's file.

#include "base/fail.h"
#include "targets.h"
#include "train/state/checkpoint_text.h"

namespace cohort::fuzz {
namespace {

void read_state(const std::string& text) {
  const auto read = training::parse_checkpoint_text(text, "state.json");
  const auto again = training::parse_checkpoint_text(training::to_json(read), "state.json");
  require(again.work.again.size() == read.work.again.size() && again.seed == read.seed,
          "a state comes back as it was");
}

}  // namespace

void state(Bytes input) {
  const std::string text(text_of(input));
  try {
    (void)training::parse_worker_text(text, "worker-1.safetensors");
  } catch (const Error&) {
  }
  read_state(text);
}

Seeds state_seeds() {
  training::CheckpointText text;
  text.step = 7;
  text.cursor = {.epoch = 1, .offset = 3};
  text.work = {.next = 16, .parts = 2, .again = {{.step = 6, .part = 1}}};
  text.batch = text.samples = 64;
  text.optimizer = "sgd";
  text.slots = {"momentum"};
  text.strategy = "allreduce";
  text.compression = "none";
  text.workers = 2;
  return {training::to_json(text)};
}

}  // namespace cohort::fuzz
