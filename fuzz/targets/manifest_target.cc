// Manifests of checkpoints, and reports of workers, which are manifests too.

#include "base/fail.h"
#include "checkpoint/checkpoint.h"
#include "targets.h"

namespace cohort::fuzz {

void manifest(Bytes input) {
  const auto read = checkpoint::parse_manifest(text_of(input), "manifest.json");
  require(checkpoint::to_text(read) == text_of(input), "there is one text for every manifest");
  for (const auto& file : read.files) {
    require(file.name.find('/') == std::string::npos, "a manifest names files of its folder");
  }
}

Seeds manifest_seeds() {
  return {checkpoint::to_text({.step = 0}),
          checkpoint::to_text(
              {.step = 1234, .files = {{"model.safetensors", 100, 7}, {"state.json", 3, 9}}})};
}

}  // namespace cohort::fuzz
